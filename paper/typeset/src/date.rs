//! The date of the report: never the clock's, so that the same sources give the same bytes.

use std::path::Path;
use typst::foundations::Datetime;

/// The variable by which builds are given a date, in seconds since 1970.
const VARIABLE: &str = "SOURCE_DATE_EPOCH";
const CITATION: &str = "CITATION.cff";
const KEY: &str = "date-released:";

/// `SOURCE_DATE_EPOCH` where it is set, else midnight of the release in `CITATION.cff`.
///
/// # Errors
/// A sentence that says which of them cannot be read, and why.
pub fn of(root: &Path) -> Result<Datetime, String> {
    match std::env::var(VARIABLE) {
        Ok(seconds) => epoch(&seconds).ok_or(format!("{VARIABLE} is `{seconds}`, not seconds since 1970")),
        Err(_) => {
            let path = root.join(CITATION);
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            released(&text).ok_or(format!("{CITATION} has no line `{KEY} YYYY-MM-DD`"))
        }
    }
}

fn epoch(seconds: &str) -> Option<Datetime> {
    let at = time::OffsetDateTime::from_unix_timestamp(seconds.trim().parse().ok()?).ok()?;
    Datetime::from_ymd_hms(at.year(), at.month().into(), at.day(), at.hour(), at.minute(), at.second())
}

fn released(citation: &str) -> Option<Datetime> {
    let line = citation.lines().find_map(|line| line.strip_prefix(KEY))?;
    let mut parts = line.trim().trim_matches(['"', '\'']).split('-');
    let (year, month, day) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let end = parts.next().is_none();
    end.then(|| Datetime::from_ymd_hms(year, month, day, 0, 0, 0)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_comes_from_either_place() {
        assert_eq!(epoch("1796083200"), Datetime::from_ymd_hms(2026, 12, 1, 0, 0, 0));
        assert_eq!(released("title: x\ndate-released: 2026-12-01\n"), epoch("1796083200"));
        assert_eq!(released("date-released: \"2026-12-01\"\n"), epoch("1796083200"));
        for wrong in ["", "date-released: soon", "date-released: 2026-13-01", "date-released: 2026-12-01-2"] {
            assert_eq!(released(wrong), None, "{wrong}");
        }
        assert_eq!(epoch("now"), None);
    }
}
