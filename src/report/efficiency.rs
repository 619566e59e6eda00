//! The backward-efficiency meter as a table, a figure and a claim.

use super::figure::{self, Figure};
use super::{ReportError, Table};
use crate::defects::meter::Efficiency;

/// One row a way and shape.
pub fn table(run: &Efficiency) -> Table {
    let header = [
        "layer",
        "way",
        "sequences × tokens",
        "forward, GFLOP/s",
        "backward, GFLOP/s",
        "forward, % of the GEMM",
        "backward, % of the GEMM",
    ];
    let mut table = Table::new("backward-efficiency", &header);
    for speed in &run.speeds {
        table.push(vec![
            speed.framework.clone(),
            speed.way.clone(),
            format!("{} × {}", speed.shape.batch, speed.shape.time),
            format!("{:.1}", speed.forward),
            format!("{:.1}", speed.backward),
            format!("{:.0}", 100.0 * run.share(speed.forward)),
            format!("{:.1}", 100.0 * run.share(speed.backward)),
        ]);
    }
    table
}

/// What the shares are of, in a sentence.
pub fn caption(run: &Efficiency) -> String {
    format!(
        "Burn {}, Candle {}, on a CPU, {} thread(s), f32, width 512; GEMM {}³ by {}: {:.0} GFLOP/s; best of {}.",
        run.burn, run.candle, run.threads, run.gemm_side, run.gemm_of, run.gemm_peak, run.rounds
    )
}

/// The figure.
///
/// # Errors
/// [`ReportError`] when there is nothing to draw.
pub fn figure(run: &Efficiency) -> Result<Figure, ReportError> {
    figure::efficiency(run, &caption(run))
}
