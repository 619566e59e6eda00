//! Runs the notebooks, each in a process of its own, one after the other, and keeps or compares what they put out.

use crate::FAILED;
use crate::drift::{drift, settle};
use crate::error::KernelError;
use crate::failure::Failure;
use crate::notebook::Notebook;
use crate::repository::Repository;
use crate::workshop::ALLOCATOR;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The folder of the notebooks; each runs in it.
    pub folder: PathBuf,
    /// Only the notebook whose name starts so.
    pub only: Option<String>,
    /// Write nothing, and fail where a stored output is not what comes out.
    pub check: bool,
    /// How long a cell may take.
    pub limit: Duration,
    /// As the stock kernel would: nothing shared, no lock file, no marks in the cells.
    pub stock: bool,
    /// Say how long each cell took.
    pub timings: bool,
}

/// Runs every notebook of the plan and says a line about each.
///
/// # Errors
/// There is none to run, or some failed; each is named as it fails.
pub fn run(repository: &Repository, plan: &Plan) -> Result<(), KernelError> {
    let notebooks = numbered(plan)?;
    let mut failed = 0;
    for notebook in &notebooks {
        let name = notebook.file_name().unwrap_or_default().to_string_lossy();
        let start = Instant::now();
        print!("{name:<28} ");
        // A terminal that does not take the half line takes the whole one.
        let _ = std::io::stdout().flush();
        match one(repository, plan, notebook) {
            Ok((cells, outcome)) => {
                println!("{cells:>3} cells {:>7.1} s  {outcome}", start.elapsed().as_secs_f64());
            }
            Err(error) => {
                println!("          {:>7.1} s  FAILED", start.elapsed().as_secs_f64());
                eprintln!("{error}");
                failed += 1;
            }
        }
    }
    if failed > 0 {
        return Err(KernelError::Notebooks { failed, total: notebooks.len() });
    }
    Ok(())
}

/// The numbered notebooks, in order.
fn numbered(plan: &Plan) -> Result<Vec<PathBuf>, KernelError> {
    let entries = std::fs::read_dir(&plan.folder).map_err(KernelError::file("read", &plan.folder))?;
    let wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let numbered = name.chars().next().is_some_and(|c| c.is_ascii_digit());
        numbered && name.ends_with(".ipynb") && plan.only.as_ref().is_none_or(|only| name.starts_with(only.as_str()))
    };
    let mut notebooks: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(wanted).collect();
    notebooks.sort();
    if notebooks.is_empty() {
        return Err(KernelError::NoNotebook { folder: plan.folder.clone(), only: plan.only.clone() });
    }
    Ok(notebooks)
}

/// Runs one; says how many cells it has and what became of its file.
fn one(repository: &Repository, plan: &Plan, path: &Path) -> Result<(usize, &'static str), KernelError> {
    let stored = Notebook::read(path)?;
    let cells = stored.code_cells().len();
    let scratch = tempfile::tempdir().map_err(KernelError::file("create a folder in", std::env::temp_dir()))?;
    let executed = scratch.path().join("executed.ipynb");
    execute_apart(plan, path, &stored.name, &executed)?;
    let bytes = std::fs::read(&executed).map_err(KernelError::file("read", &executed))?;
    let mut fresh = Notebook::parse(stored.name.clone(), &bytes)?;
    settle(&stored, &mut fresh);
    fresh.inspect(&repository.machine_paths())?;
    let (before, after) = (std::fs::read(path).map_err(KernelError::file("read", path))?, fresh.to_bytes());
    if before == after {
        return Ok((cells, "unchanged"));
    }
    if !plan.check {
        write(path, &after)?;
        return Ok((cells, "written"));
    }
    let failure = drift(&stored, &fresh).unwrap_or_else(|| {
        Failure::of_file(&stored.name, "is not laid out as the runner writes it: run `make notebooks`")
    });
    Err(failure.into())
}

/// Executes the notebook in a process of its own, in the notebook's folder as Jupyter does.
fn execute_apart(plan: &Plan, path: &Path, name: &str, to: &Path) -> Result<(), KernelError> {
    let program = std::env::current_exe().map_err(KernelError::file("find", "this program"))?;
    let output = Command::new(&program)
        .arg("execute")
        .arg(path.canonicalize().map_err(KernelError::file("read", path))?)
        .arg(to)
        .args(["--timeout", &plan.limit.as_secs().to_string()])
        .args(plan.stock.then_some("--stock"))
        .args(plan.timings.then_some("--timings"))
        .current_dir(&plan.folder)
        .env(ALLOCATOR.0, ALLOCATOR.1)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| KernelError::Start { program: program.display().to_string(), source })?;
    if plan.timings {
        print!("\n{}", String::from_utf8_lossy(&output.stdout));
    }
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.code() == Some(FAILED) {
        return Err(KernelError::Told(told));
    }
    let what = format!("the kernel itself ended, with {}", output.status);
    Err(Failure::of_file(name, what).because(told).into())
}

/// Replaces the file as a whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), KernelError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".notebook").tempfile_in(folder);
    let mut file = file.map_err(KernelError::file("write in", folder))?;
    let permissions = std::fs::metadata(path).and_then(|data| file.as_file().set_permissions(data.permissions()));
    permissions.and_then(|()| file.write_all(bytes)).map_err(KernelError::file("write", path))?;
    file.persist(path).map_err(|error| KernelError::file("write", path)(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Plan, numbered, write};
    use std::time::Duration;

    #[test]
    fn notebooks_come_in_order_and_one_can_be_chosen() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["01-b.ipynb", "00-a.ipynb", "README.md", "draft.ipynb", "02-c.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut plan = Plan {
            folder: folder.path().into(),
            only: None,
            check: false,
            limit: Duration::from_secs(1),
            stock: false,
            timings: false,
        };
        let names = |plan: &Plan| {
            let paths = numbered(plan)?;
            Ok::<_, super::KernelError>(paths.iter().map(|p| p.file_name().unwrap().to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(names(&plan).unwrap(), ["00-a.ipynb", "01-b.ipynb"]);
        plan.only = Some("01".into());
        assert_eq!(names(&plan).unwrap(), ["01-b.ipynb"]);
        plan.only = Some("07".into());
        assert!(names(&plan).unwrap_err().to_string().ends_with("starts with 07"));
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ipynb");
        std::fs::write(&path, "old, and longer").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
