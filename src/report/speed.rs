//! Speed of training and of single ops, from the stored measurements of the benchmarks.

use super::{ReportError, Table};
use std::collections::BTreeMap;

const YARDSTICK: &str = "composed";

/// What the training benchmark measured of one way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Way {
    /// Loss of each step, nats per token.
    pub losses: Vec<f64>,
    /// Seconds of each step.
    pub seconds: Vec<f64>,
}

impl Way {
    /// Seconds of the median step.
    pub fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The largest difference of a step's loss from another way's.
    pub fn apart(&self, other: &Way) -> f64 {
        self.losses.iter().zip(&other.losses).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }
}

/// Reads `step,way,loss,seconds` as `benches/training.rs` writes it.
///
/// # Errors
/// [`ReportError::Table`] naming the line that is none.
pub fn ways(csv: &str) -> Result<BTreeMap<String, Way>, ReportError> {
    let mut ways: BTreeMap<String, Way> = BTreeMap::new();
    for (line, cells) in rows::<4>(csv, "speed") {
        let [_, way, loss, seconds] = cells?;
        let way = ways.entry(way.to_owned()).or_default();
        way.losses.push(number("speed", line, loss)?);
        way.seconds.push(number("speed", line, seconds)?);
    }
    Ok(ways)
}

/// One row a way: steps, median step, speed beside the one composed from Candle's ops, and how far their losses are
/// apart. `tokens` is how many a step has.
pub fn table(ways: &BTreeMap<String, Way>, tokens: usize) -> Table {
    let header = ["products", "steps", "median step, ms", "tokens/s", "times composed", "largest difference of a loss"];
    let mut table = Table::new("speed", &header);
    let yardstick = ways.get(YARDSTICK).cloned().unwrap_or_default();
    for (name, way) in ways {
        let speed = tokens as f64 / way.median();
        table.push(vec![
            if name == YARDSTICK { "f32, composed from Candle ops".to_owned() } else { format!("{name}, ours") },
            way.seconds.len().to_string(),
            format!("{:.0}", 1e3 * way.median()),
            format!("{speed:.0}"),
            format!("{:.2}", yardstick.median() / way.median()),
            if name == YARDSTICK { String::new() } else { format!("{:.1e}", way.apart(&yardstick)) },
        ]);
    }
    table
}

/// One row an op: ours, composed and Candle's fused kernel, forward and with backward, in milliseconds.
///
/// # Errors
/// [`ReportError::Table`] naming the line that is none.
pub fn ops(csv: &str) -> Result<Table, ReportError> {
    let mut found: BTreeMap<(&str, &str), [&str; 2]> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for (_, cells) in rows::<4>(csv, "ops") {
        let [op, way, forward, both] = cells?;
        if !order.contains(&op) {
            order.push(op);
        }
        found.insert((op, way), [forward, both]);
    }
    let header = [
        "op",
        "ours, forward",
        "composed",
        "Candle fused",
        "ours, with backward",
        "composed, with backward",
        "times faster",
    ];
    let mut table = Table::new("ops", &header);
    for op in order {
        let cell = |way: &str, at: usize| found.get(&(op, way)).map(|cells| cells[at]).filter(|cell| !cell.is_empty());
        let shown = |cell: Option<&str>| {
            cell.and_then(|c| c.parse().ok()).map_or("none".to_owned(), |x: f64| format!("{x:.2}"))
        };
        let ratio = |a: Option<&str>, b: Option<&str>| Some(a?.parse::<f64>().ok()? / b?.parse::<f64>().ok()?);
        table.push(vec![
            op.to_owned(),
            shown(cell("ours", 0)),
            shown(cell(YARDSTICK, 0)),
            shown(cell("candle-fused", 0)),
            shown(cell("ours", 1)),
            shown(cell(YARDSTICK, 1)),
            ratio(cell(YARDSTICK, 1), cell("ours", 1)).map_or(String::new(), |x| format!("{x:.1}")),
        ]);
    }
    Ok(table)
}

/// The lines after the header, each with its number and its `N` cells.
fn rows<'t, const N: usize>(
    csv: &'t str,
    name: &'static str,
) -> impl Iterator<Item = (usize, Result<[&'t str; N], ReportError>)> {
    csv.lines().enumerate().skip(1).map(move |(at, line)| {
        let cells: Vec<&str> = line.split(',').collect();
        let wrong = |_| bad(name, at + 1, &format!("has not {N} cells"));
        (at + 1, <[&str; N]>::try_from(cells).map_err(wrong))
    })
}

fn number(name: &str, line: usize, cell: &str) -> Result<f64, ReportError> {
    cell.parse().map_err(|_| bad(name, line, &format!("`{cell}` is no number")))
}

fn bad(name: &str, line: usize, message: &str) -> ReportError {
    ReportError::Table { name: name.to_owned(), message: format!("line {line} {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_medians_beside_the_yardstick() {
        let csv = "step,way,loss,seconds\n1,f32,2.5,0.5\n2,f32,2.25,0.25\n1,composed,2.5,1\n2,composed,2.0,1\n";
        let ways = ways(csv).unwrap();
        let text = table(&ways, 100).to_csv().unwrap();
        assert!(text.contains("\"f32, ours\",2,500,200,2.00,2.5e-1\n"), "{text}");
        assert!(text.contains("\"f32, composed from Candle ops\",2,1000,100,1.00,\"\"\n"), "{text}");
        assert!(super::ways("h\n1,f32,2.5\n").unwrap_err().to_string().contains("line 2 has not 4 cells"));
        assert!(super::ways("h\n1,f32,x,1\n").unwrap_err().to_string().contains("`x` is no number"));
    }

    #[test]
    fn an_op_without_a_backward_says_none() {
        let csv = "op,way,forward_ms,forward_backward_ms\nRoPE,ours,0.5,2\nRoPE,composed,1,9\nRoPE,candle-fused,1,\n";
        assert_eq!(ops(csv).unwrap().to_csv().unwrap().lines().nth(1), Some("RoPE,0.50,1.00,1.00,2.00,9.00,4.5"));
        let text = ops("h\nlinear,ours,0.5,2\n").unwrap().to_csv().unwrap();
        assert_eq!(text.lines().nth(1), Some("linear,0.50,none,none,2.00,none,\"\""));
    }
}
