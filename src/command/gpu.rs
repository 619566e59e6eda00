//! `shikha bench gpu`: one command for a machine with an NVIDIA GPU.

use clap::Args;
use std::error::Error;
use std::path::PathBuf;

/// What to measure, and where the record goes.
#[derive(Args)]
pub struct GpuArgs {
    /// A built-in recipe, or the path of a recipe file
    #[arg(default_value = "bn-0.4b-h100")]
    pub recipe: String,
    /// Steps that are timed
    #[arg(long, default_value_t = 10)]
    pub steps: usize,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    pub gpu: usize,
    /// US$ for an hour of this machine
    #[arg(long, requires = "stated_by", value_parser = price)]
    pub price: Option<f64>,
    /// Whose price that is, and of what date
    #[arg(long)]
    pub stated_by: Option<String>,
    /// Folder for the record
    #[arg(long, value_name = "DIR", default_value = "checkpoints/gpu")]
    pub store: PathBuf,
    /// Measure the processor where there is no GPU
    #[arg(long)]
    pub or_cpu: bool,
}

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().map_err(|_| "not a number".to_owned())?;
    if f64::is_finite(price) && price >= 0.0 { Ok(price) } else { Err("a price is a number from 0 up".to_owned()) }
}

/// Whether there is no GPU to use, rather than one that does something wrong.
pub fn is_missing(reason: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "cuda")]
    if let Some(error) = reason.downcast_ref::<shikha::ops::cuda::DeviceError>() {
        return error.is_missing();
    }
    matches!(reason.downcast_ref(), Some(shikha::train::TrainError::NoCuda))
}

impl GpuArgs {
    /// Checks, measures and writes the record; the reason when there is no GPU to use.
    #[cfg(feature = "cuda")]
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        use shikha::artifact::write_atomic;
        use shikha::ops::cuda::Device;
        use shikha::recipe::Recipe;
        use shikha::train::gpu::{check_all, peak_of, time};
        let recipe = Recipe::load(&self.recipe)?;
        let info = Device::open(self.gpu)?.info()?;
        let mut lines = Vec::new();
        let mut log = |line: String| {
            println!("{line}");
            lines.push(line);
        };
        log(format!("{}, compute capability {}, CUDA {}", info.name, info.capability, info.cuda));
        let checked = check_all(|| Device::open(self.gpu), &mut log);
        let timed = if checked.wrong.is_empty() {
            let peak = peak_of(&info.name);
            let memory = |device: &mut Device| device.in_use();
            let timed = time(Device::open(self.gpu)?, &recipe, self.steps, peak, memory, &mut log);
            timed.map_err(|error| log(format!("not timed: {error}"))).ok()
        } else {
            log("not timed: something is wrong".to_owned());
            None
        };
        if let Some(timed) = &timed {
            let share = timed.peak_share.map_or("not known".to_owned(), |share| format!("{:.1} %", 100.0 * share));
            let memory = [timed.memory, timed.planned_memory].map(|bytes| format!("{:.2} GB", bytes as f64 / 1e9));
            log(format!("{:.0} tokens/s, share of the peak {share}", timed.tokens_per_second));
            log(format!("{} in use, {} planned", memory[0], memory[1]));
        }
        let record = self.record(info, checked, timed, lines);
        let path = self.store.join(record.file_name());
        let mut text = serde_json::to_vec_pretty(&record)?;
        text.push(b'\n');
        write_atomic(&path, &text)?;
        println!("{}; `shikha figures` draws it", path.display());
        match record.checked.wrong.first() {
            Some(first) => Err(format!("{} things are wrong, the first: {first}", record.checked.wrong.len()).into()),
            None => Ok(()),
        }
    }

    /// What was found, with the machine it was found on.
    #[cfg(feature = "cuda")]
    fn record(
        &self,
        info: shikha::ops::cuda::DeviceInfo,
        checked: shikha::train::gpu::Checked,
        timed: Option<shikha::train::gpu::Timed>,
        log: Vec<String>,
    ) -> shikha::train::gpu::Record {
        use shikha::train::gpu::{FORMAT, Hardware, Price, Record, source, today};
        let price = self.price.zip(self.stated_by.clone());
        Record {
            format: FORMAT,
            date: today(),
            source: source(),
            hardware: Hardware {
                gpu: info.name,
                capability: info.capability,
                memory: info.memory,
                cuda: info.cuda,
                driver: info.driver,
                processor: shikha::machine::processor(),
                threads: rayon::current_num_threads(),
            },
            price: price.map(|(dollars_an_hour, stated_by)| Price { dollars_an_hour, stated_by }),
            checked,
            timed,
            log,
        }
    }

    /// Says that this program cannot use a GPU.
    #[cfg(not(feature = "cuda"))]
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        shikha::recipe::Recipe::load(&self.recipe)?;
        Err(shikha::train::TrainError::NoCuda.into())
    }
}
