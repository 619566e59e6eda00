//! Training speed on a GPU: what the abstract reports, what is aimed at, and every record there is.

use super::{Ledger, ReportError, Table};
use crate::recipe::Recipe;
use crate::train::TrainError;
use crate::train::plan::{DEVICES, GOAL_HOURS, Plan};
use crate::train::record::{Checked, Record};

const RECIPE: &str = "bn-0.4b-h100";
const DEVICE: &str = "h100";
/// What stands where nothing was measured.
pub(super) const NOT_MEASURED: &str = "not measured";

/// One row for the abstract, one for the goal, and one for each benchmark of a GPU, or one that says that there is none.
///
/// # Errors
/// [`ReportError::Ledger`] when the abstract's numbers or the large recipe cannot be had.
pub fn table(ledger: &Ledger, records: &[Record]) -> Result<Table, ReportError> {
    let failed = |message: String| ReportError::Ledger(message);
    let recipe = Recipe::load(RECIPE).map_err(|e| failed(e.to_string()))?;
    let plan = Plan::of(&recipe).map_err(|e: TrainError| failed(e.to_string()))?;
    let device = DEVICES.iter().find(|device| device.name == DEVICE);
    let peak = device.map(|device| device.peak).ok_or_else(|| failed(format!("there is no device `{DEVICE}`")))?;
    let stated = |id: &str| ledger.reported(id);
    let (parameters, tokens, hours) = (stated("parameters")?, stated("training-tokens")?, stated("hours")?);
    let speed = tokens / (3600.0 * hours);
    let header =
        ["what", "device", "date", "tokens/s", "share of the bf16 peak", "hours for the recipe", "US$", "kernels"];
    let mut table = Table::new("gpu", &header);
    let mut row = |cells: [String; 8]| table.push(cells.into());
    row([
        "reported by the abstract".to_owned(),
        "one H100".to_owned(),
        String::new(),
        format!("{speed:.0}"),
        format!("{:.1} %", 100.0 * 6.0 * parameters * speed / peak),
        format!("{hours:.1}"),
        format!("{:.0}", stated("cost")?),
        String::new(),
    ]);
    let needed = plan.needed(GOAL_HOURS);
    row([
        format!("goal for `{RECIPE}`"),
        "one H100 or H200".to_owned(),
        String::new(),
        format!("{needed:.0}"),
        format!("{:.1} %", 100.0 * plan.share(peak, needed)),
        format!("{GOAL_HOURS:.1}"),
        String::new(),
        String::new(),
    ]);
    let mut none = true;
    for (record, checked) in records.iter().filter_map(|record| Some((record, record.checked.as_ref()?))) {
        row(measured(record, checked, &plan));
        none = false;
    }
    if none {
        let mut cells = ["this program", "", "", "", "", "", "", ""].map(str::to_owned);
        cells[1..].iter_mut().for_each(|cell| *cell = NOT_MEASURED.to_owned());
        row(cells);
    }
    Ok(table)
}

const RESOURCES: &str = include_str!("../ops/cuda/ptx/resources.csv");
const TRAFFIC: &str = include_str!("../ops/cuda/traffic.csv");
/// The architecture of H100 and H200.
const ARCHITECTURE: &str = "sm_90";

/// One row a kernel: registers, spilled bytes and static shared memory on an H100, as the assembler says, then the
/// shared memory of one launch, the bytes that its threads ask for, counted on the processor, and the fewest that memory
/// must move. A number that several threads read counts for each; a GPU's caches serve all but the first.
///
/// # Errors
/// [`ReportError::Table`] when a committed file is not as expected.
pub fn kernels() -> Result<Table, ReportError> {
    let failed = |message: String| ReportError::Table { name: "kernels".to_owned(), message };
    let rows = |text: &str| -> Result<Vec<Vec<String>>, ReportError> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let row = |record: csv::Result<csv::StringRecord>| Ok(record?.iter().map(str::to_owned).collect());
        reader.records().map(row).collect::<csv::Result<_>>().map_err(|e| failed(e.to_string()))
    };
    let (resources, traffic) = (rows(RESOURCES)?, rows(TRAFFIC)?);
    let header = [
        "kernel",
        "registers",
        "spilled bytes",
        "static shared bytes",
        "shared bytes of the launch",
        "bytes asked for",
        "fewest possible",
        "times",
    ];
    let mut table = Table::new("kernels", &header);
    for line in &traffic {
        let [kernel, shared, moved, fewest] = &line[..] else {
            return Err(failed("traffic.csv has not 4 columns".to_owned()));
        };
        let found = resources.iter().find(|row| row[0] == *kernel && row[1] == ARCHITECTURE);
        let found = found.ok_or_else(|| failed(format!("resources.csv has no `{kernel}` for {ARCHITECTURE}")))?;
        let number = |cell: &str| cell.parse::<f64>().map_err(|_| failed(format!("`{cell}` is no number")));
        let spilled = number(&found[4])?.max(number(&found[5])?);
        let times = number(moved)? / number(fewest)?;
        let cells = [
            kernel.clone(),
            found[2].clone(),
            format!("{spilled:.0}"),
            found[6].clone(),
            shared.clone(),
            moved.clone(),
            fewest.clone(),
        ];
        table.push(cells.into_iter().chain([format!("{times:.2}")]).collect());
    }
    Ok(table)
}

fn measured(record: &Record, checked: &Checked, plan: &Plan) -> [String; 8] {
    let none = || NOT_MEASURED.to_owned();
    let timed = record.timed.as_ref();
    let hours = timed.filter(|t| t.recipe == RECIPE).map(|t| plan.tokens as f64 / t.tokens_per_second / 3600.0);
    let share = timed.and_then(|t| record.peak_share(t.flops_per_token, t.tokens_per_second));
    [
        timed.map_or("this program".to_owned(), |t| format!("this program, `{}`", t.recipe)),
        record.hardware.name(),
        record.date.clone(),
        timed.map_or_else(none, |t| format!("{:.0}", t.tokens_per_second)),
        share.map_or_else(none, |share| format!("{:.1} %", 100.0 * share)),
        hours.map_or_else(none, |hours| format!("{hours:.2}")),
        hours
            .zip(record.price.as_ref())
            .map_or_else(none, |(h, p)| format!("{:.2} ({})", h * p.dollars_an_hour, p.stated_by)),
        match checked.wrong.len() {
            0 => format!("{} cases right", checked.kernels.len()),
            wrong => format!("{wrong} wrong"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Hash;
    use crate::machine::{GpuInfo, Hardware};
    use crate::train::record::{FORMAT, Price, Timed};

    fn record() -> Record {
        let gpu = GpuInfo {
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            capability: "9.0".to_owned(),
            memory: 80 << 30,
            cuda: "13.0".to_owned(),
            driver: Some("580.1".to_owned()),
        };
        let timed = Timed {
            recipe: RECIPE.to_owned(),
            parameters: 401_000_000,
            tokens_per_step: 524_288,
            seconds: vec![4.0],
            losses: vec![11.0],
            tokens_per_second: 200_000.0,
            flops_per_token: 2.7e9,
            memory: 1,
            planned_memory: 1,
        };
        Record {
            format: FORMAT,
            date: "2027-01-02".to_owned(),
            source: Hash([0; 32]),
            hardware: Hardware { gpu: Some(gpu), processor: None, threads: 16 },
            price: Some(Price { dollars_an_hour: 3.0, stated_by: "a cloud, 2027-01-01".to_owned() }),
            checked: Some(Checked { kernels: [("norm".to_owned(), 1e-6)].into(), gradients: [].into(), wrong: vec![] }),
            timed: Some(timed),
            run: None,
            log: vec![],
        }
    }

    #[test]
    fn without_a_record_it_says_so_and_with_one_it_stands_beside_the_abstract() {
        let ledger = Ledger::built_in().unwrap();
        let empty = table(&ledger, &[]).unwrap().to_csv().unwrap();
        assert!(empty.contains("10175") && empty.contains("2.5 %"), "{empty}");
        assert!(empty.ends_with(&format!("this program{}\n", ",not measured".repeat(7))), "{empty}");
        let with = table(&ledger, &[record()]).unwrap().to_csv().unwrap();
        let last = with.lines().last().unwrap();
        assert!(last.contains("NVIDIA H100 80GB HBM3,2027-01-02,200000,54.6 %,2.78,"), "{last}");
        assert!(last.contains("8.33 (a cloud, 2027-01-01)") && last.contains("1 cases right"), "{last}");
        assert!(!with.contains(NOT_MEASURED));
    }
}
