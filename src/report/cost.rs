//! The cost curve as a table: how time and memory grow with each size.

use super::Table;
use crate::train::cost::CostPoint;

/// One row a model: its size, speed and memory, and how time and memory grew from the size before.
pub fn table(points: &[CostPoint]) -> Table {
    let header =
        ["what grows", "size", "parameters", "s/step", "tokens/s", "% of f32 peak", "memory, MB", "time ×", "memory ×"];
    let mut table = Table::new("cost", &header);
    for (i, point) in points.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| &points[i]).filter(|before| before.dimension == point.dimension);
        let times = |now: Option<f64>, then: Option<f64>| match (now, then) {
            (Some(now), Some(then)) => format!("{:.2}", now / then),
            _ => String::new(),
        };
        table.push(vec![
            point.dimension.clone(),
            point.size.to_string(),
            format!("{:.2} M", point.result.parameters as f64 / 1e6),
            format!("{:.3}", point.seconds()),
            format!("{:.0}", point.result.tokens_per_second),
            format!("{:.0}", 100.0 * point.result.gemm_peak_share),
            megabytes(point).map_or("not measured".to_owned(), |m| format!("{m:.0}")),
            times(Some(point.seconds()), before.map(CostPoint::seconds)),
            times(megabytes(point), before.and_then(megabytes)),
        ]);
    }
    table
}

/// Peak memory in megabytes.
pub(super) fn megabytes(point: &CostPoint) -> Option<f64> {
    point.result.memory_bytes.map(|bytes| bytes as f64 / 1e6)
}

/// On what the curve was measured.
pub fn caption(points: &[CostPoint]) -> String {
    let Some(point) = points.first() else { return String::new() };
    let steps = point.result.seconds.len();
    let preset = points.iter().find(|p| p.dimension == "length").map_or(0.0, |p| p.result.parameters as f64 / 1e6);
    format!(
        "{preset:.1} M parameters where nothing grows, {} products, median of {steps} steps, one process a point, on this machine.",
        point.result.precision.name()
    )
}
