//! The claims ledger: each number of the abstract once, in three columns that never mix.

use super::{Measurements, ReportError, Table};
use serde::Deserialize;

/// One claim of the abstract.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Unique name.
    pub id: String,
    /// What is claimed, in our words.
    pub wording: String,
    /// The abstract's number.
    pub reported: Option<f64>,
    /// The abstract's statement, where it gives no number.
    pub reported_text: Option<String>,
    /// Whether the abstract says "about".
    #[serde(default)]
    pub about: bool,
    /// Unit of the number.
    pub unit: String,
    /// How it is measured here.
    pub measured_by: String,
    /// What measuring it would take where it was not.
    pub needs: String,
    /// Of what the abstract states it, and we measure it.
    pub scale: String,
    /// Which difference from the reported value still counts as agreement, or why none is asked for.
    pub tolerance: String,
    /// The command that measures it here.
    pub command: String,
    /// How long that takes, built, in minutes.
    pub minutes: u32,
    /// What machine it takes.
    pub hardware: String,
}

/// All claims, in the order of the abstract.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The claims.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

impl Ledger {
    /// The ledger that comes with the program, `paper/claims.toml`.
    ///
    /// # Errors
    /// [`ReportError::Ledger`] when it contradicts itself.
    pub fn built_in() -> Result<Self, ReportError> {
        Self::parse(include_str!("../../paper/claims.toml"))
    }

    /// Parses a ledger.
    ///
    /// # Errors
    /// [`ReportError::Ledger`] for an unknown key, a repeated id, or a claim without a statement.
    pub fn parse(text: &str) -> Result<Self, ReportError> {
        let ledger: Ledger =
            toml::from_str(text).map_err(|e| ReportError::Ledger(crate::recipe::one_line(&e.to_string())))?;
        for (i, claim) in ledger.claims.iter().enumerate() {
            if ledger.claims[..i].iter().any(|other| other.id == claim.id) {
                return Err(ReportError::Ledger(format!("`{}` is stated twice", claim.id)));
            }
            if claim.reported.is_some() == claim.reported_text.is_some() {
                return Err(ReportError::Ledger(format!(
                    "`{}` needs `reported` or `reported_text`, one of them",
                    claim.id
                )));
            }
        }
        Ok(ledger)
    }

    /// The number that the abstract states for a claim.
    ///
    /// # Errors
    /// [`ReportError::Ledger`] when there is no such claim, or it states none.
    pub fn reported(&self, id: &str) -> Result<f64, ReportError> {
        let claim = self.claims.iter().find(|claim| claim.id == id).and_then(|claim| claim.reported);
        claim.ok_or_else(|| ReportError::Ledger(format!("`{id}` states no number")))
    }

    /// Refuses measurements of claims that are not in the ledger.
    ///
    /// # Errors
    /// [`ReportError::Ledger`] naming the first.
    pub fn check(&self, measurements: &Measurements) -> Result<(), ReportError> {
        let known = |id: &&String| !self.claims.iter().any(|claim| claim.id == **id);
        match measurements.values.keys().find(known) {
            Some(id) => Err(ReportError::Ledger(format!("`{id}` was measured but is no claim"))),
            None => Ok(()),
        }
    }

    /// The table: claim, reported, reference run, this machine now.
    ///
    /// # Errors
    /// [`ReportError`] when a measurement is of no claim.
    pub fn table(&self, reference: Option<&Measurements>, now: Option<&Measurements>) -> Result<Table, ReportError> {
        for measurements in [reference, now].into_iter().flatten() {
            self.check(measurements)?;
        }
        let mut table = Table::new("claims", &["claim", "reported", "reference run", "this machine now"]);
        for claim in &self.claims {
            let none = "not measured: no reference run is committed";
            let reference = reference.map_or(none.to_owned(), |m| claim.measured(m));
            let now = now.map_or("not measured: run `make reproduce`".to_owned(), |m| claim.measured(m));
            table.push(vec![claim.wording.clone(), claim.reported(), reference, now]);
        }
        Ok(table)
    }

    /// What a reader runs for each claim and what comes out: the reference run's value is the expected one.
    pub fn reproducing(&self, reference: &Measurements) -> Table {
        let header =
            ["claim", "reported", "of what", "expected here", "agrees within", "command", "minutes", "hardware"];
        let mut table = Table::new("reproducing", &header);
        for claim in &self.claims {
            table.push(vec![
                claim.wording.clone(),
                claim.reported(),
                claim.scale.clone(),
                claim.measured(reference),
                claim.tolerance.clone(),
                format!("`{}`", claim.command),
                claim.minutes.to_string(),
                claim.hardware.clone(),
            ]);
        }
        table
    }
}

impl Claim {
    pub(super) fn reported(&self) -> String {
        match (self.reported, &self.reported_text) {
            (Some(value), _) => format!("{}{}", if self.about { "about " } else { "" }, self.with_unit(&stated(value))),
            (None, text) => text.clone().unwrap_or_default(),
        }
    }

    pub(super) fn measured(&self, measurements: &Measurements) -> String {
        match measurements.values.get(&self.id) {
            Some(m) => {
                let value = self.with_unit(&number(m.value));
                m.interval.map_or(value.clone(), |[low, high]| format!("{value} [{}, {}]", number(low), number(high)))
            }
            None => format!("not measured: needs {}", self.needs),
        }
    }

    fn with_unit(&self, value: &str) -> String {
        format!("{value} {}", self.unit).trim_end().to_owned()
    }
}

/// A number of the abstract, with no digit more than it gives.
fn stated(x: f64) -> String {
    if x.abs() >= 1e5 { number(x) } else { x.to_string() }
}

/// A number for a reader: three digits or so, large ones with M or B.
pub(super) fn number(x: f64) -> String {
    match x.abs() {
        a if a >= 1e9 => format!("{:.3} B", x / 1e9).replace(".000", ""),
        a if a >= 1e5 => format!("{:.3} M", x / 1e6).replace(".000", ""),
        a if a >= 100.0 || x == x.trunc() => format!("{x:.0}"),
        a if a >= 0.1 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Measured;
    use std::collections::BTreeMap;

    fn measurements(id: &str, value: f64) -> Measurements {
        let measured = Measured { value, interval: Some([value - 0.5, value + 0.5]), source: "eval.json".to_owned() };
        Measurements { run: "r".to_owned(), scale: "s".to_owned(), values: BTreeMap::from([(id.to_owned(), measured)]) }
    }

    #[test]
    fn columns_never_mix() {
        let ledger = Ledger::built_in().unwrap();
        let now = measurements("nll-trained", 5.25);
        let text = ledger.table(None, Some(&now)).unwrap().to_markdown();
        let row = text.lines().find(|l| l.contains("Trained model")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2], "0.93 nats/token");
        assert!(cells[3].starts_with("not measured"), "{row}");
        assert_eq!(cells[4], "5.25 nats/token [4.75, 5.75]");
    }

    #[test]
    fn what_was_not_measured_says_what_it_needs() {
        let ledger = Ledger::built_in().unwrap();
        let text = ledger.table(None, Some(&measurements("nll-trained", 5.25))).unwrap().to_markdown();
        for claim in ledger.claims.iter().filter(|c| c.id != "nll-trained") {
            let row = text.lines().find(|l| l.contains(&claim.wording)).unwrap();
            assert!(row.contains(&format!("not measured: needs {}", claim.needs)), "{row}");
        }
    }

    #[test]
    fn a_measurement_of_no_claim_and_a_claim_stated_twice_are_refused() {
        let ledger = Ledger::built_in().unwrap();
        let error = ledger.table(None, Some(&measurements("nll-traind", 1.0))).unwrap_err().to_string();
        assert!(error.contains("`nll-traind`"), "{error}");
        let one = "[[claim]]\nid='a'\nwording='w'\nreported=1.0\nunit=''\nmeasured_by=''\nneeds=''\nscale=''\n\
                   tolerance=''\ncommand=''\nminutes=1\nhardware=''\n";
        assert!(Ledger::parse(one).is_ok());
        assert!(Ledger::parse(&one.repeat(2)).unwrap_err().to_string().contains("twice"));
        assert!(Ledger::parse(&one.replace("reported=1.0", "")).unwrap_err().to_string().contains("one of them"));
        assert!(Ledger::parse(&one.replace("unit", "unti")).unwrap_err().to_string().contains("unti"));
    }

    #[test]
    fn numbers_are_for_readers() {
        let texts = [4e8, 2e9, 54.6, 164.0, 0.93, 12.6, 5.0, 0.0312, 983_040.0].map(number);
        assert_eq!(texts, ["400 M", "2 B", "54.60", "164", "0.93", "12.60", "5", "0.0312", "0.983 M"]);
    }
}
