# Each target is one call of the command. RECIPE: a built-in name or a .toml file. MIRROR: a folder of raw files.
RECIPE ?= pocket
ifdef MIRROR
export SHIKHA_MIRROR = $(MIRROR)
endif
SHIKHA = cargo run --release --locked --quiet --
KERNEL = cd notebooks/kernel && cargo run --release --locked --

.PHONY: test advisories test-burn arbiter arbiter-store reproduce figures claims page paper study tokenizer defects defects-candle defects-burn defects-meter defects-store defects-vulkan defects-matrix defects-reproducers bench bench-gpu check-cuda kill fuzz fuzz-guided load unsafe mutants native ptx notebooks notebooks-check notebooks-test jupyter
test: ; cargo test --release --locked --workspace
test-burn: ; cd burn && cargo test --release --locked --workspace
arbiter: ; $(SHIKHA) arbiter score
arbiter-store: ; $(SHIKHA) arbiter score --store checkpoints/arbiter/score.json && $(SHIKHA) figures
reproduce: ; $(SHIKHA) reproduce $(RECIPE)
# Every figure and table of the report from what is stored under checkpoints/ and defects/.
figures: ; $(SHIKHA) figures
claims: ; $(SHIKHA) claims
# The same results as one HTML file that opens from disk: paper/report.html.
page: figures
# The report as PDF: the same bytes on every machine. The typesetter takes some ten minutes to build, once.
paper: ; cargo run --release --locked --quiet --manifest-path paper/typeset/Cargo.toml -- . paper/report.typ paper/report.pdf
study: ; $(SHIKHA) fertility study && $(SHIKHA) fertility consequence && $(SHIKHA) figures
# The released tokenizer, trained again and chosen again.
tokenizer: ; $(SHIKHA) fertility release && $(SHIKHA) figures
defects: defects-candle defects-burn
defects-candle: ; $(SHIKHA) defects --store runs/defects/outcomes.json && $(SHIKHA) defects --matrix defects/matrix/candle.json
# Burn's half is a program of its own; where cargo cannot build it, it is left out and said so.
BURN = burn/target/release/shikha-burn-defects
BUILD_BURN = { test -x $(BURN) || echo "Building Burn's half of the catalogue: a quarter of an hour the first time."; cargo build --release --locked --manifest-path burn/Cargo.toml --target-dir burn/target -p shikha-burn-defects; }
defects-burn: ; @if $(BUILD_BURN); then $(SHIKHA) defects --burn $(BURN) --store runs/defects/burn.json; else echo "Burn's half is left out: cargo could not build it here."; fi
defects-store: ; $(SHIKHA) defects --store defects/outcomes.json && $(BUILD_BURN) && $(SHIKHA) defects --burn $(BURN) --store defects/burn.json && $(SHIKHA) figures
# One thread a product, so that shares of the GEMM compare.
defects-meter: ; $(BUILD_BURN) && mkdir -p runs && RAYON_NUM_THREADS=1 $(BURN) --meter > runs/meter.json && mv runs/meter.json defects/backward-efficiency.json && $(SHIKHA) figures
# Burn's fusion on software Vulkan (Debian's package mesa-vulkan-drivers), as far as a CPU trains: two builds, some minutes each.
defects-vulkan:
	for features in wgpu wgpu-fusion; do cargo build --release --locked --manifest-path burn/Cargo.toml --target-dir burn/target -p shikha-burn-defects --features $$features && $(SHIKHA) defects --burn $(BURN) --seconds 1800 --memory 65536 --into defects/matrix/burn-vulkan.json --built "$$(date +%F)" "$$(rustc --version)" || exit 1; done
	$(SHIKHA) figures
defects-matrix: ; defects/matrix/run.sh
defects-reproducers: ; cargo test --release --locked --test all every_reproducer -- --ignored && cd burn && cargo test --release --locked -p shikha-burn-defects --test entries every_reproducer -- --ignored
bench: ; cargo bench --locked --bench training -- 50 $(CURDIR)/checkpoints/bench && cargo bench --locked --bench ops -- $(CURDIR)/checkpoints/bench && $(SHIKHA) bench cost --store checkpoints/bench/cost.json && cargo bench --locked --bench stream -- $(CURDIR)/checkpoints/bench && $(SHIKHA) figures && cargo bench --locked --bench monitor && cargo bench --locked --bench encode
# Every boundary below the artifact layer and 200 random moments; then, for `fuzz`, so many seconds of damaged forms for
# each parser that reads a user's file.
kill: ; SHIKHA_EVERY_BOUNDARY=1 SHIKHA_KILLS=$${SHIKHA_KILLS:-200} cargo test --release --locked --test all robust -- --nocapture --skip robust_parsers --skip robust_load
fuzz: ; SHIKHA_FUZZ_SECONDS=$${SHIKHA_FUZZ_SECONDS:-600} cargo test --release --locked --test all robust_parsers -- --nocapture --test-threads=1
# The same parsers under libFuzzer, which follows what an input reached; needs cargo-fuzz. NAME: folders of fuzz/seeds.
fuzz-guided: ; fuzz/run.sh $(NAME)
# A line of 2 GB, ten million documents of a word, 50,000 near duplicates: from text to shards in a gigabyte.
load: ; cargo test --release --locked --test all a_full_load -- --ignored --nocapture
# The unit tests of the unsafe code under Miri and AddressSanitizer; builds everything once more.
unsafe: ; tests/unsafe.sh
# Known faults of the dependencies, by the database of the day; needs cargo-deny and GitHub.
advisories: ; cargo deny --locked check advisories
# Mutation testing of arbiter, ops, loader, checkpoint and claims: tests/mutants.md. Hours; not part of the tests.
mutants: ; tests/mutants.sh $(AREA)
# The kernels as PTX, and what they take of a device; needs no GPU. `cuda/build.sh --check` only compares.
ptx: ; cuda/build.sh
# The program with the feature `cuda`, type-checked and linted; needs no CUDA and no GPU.
check-cuda: ; cargo clippy --release --locked --features cuda --lib --bins --tests -- -D warnings
# On a machine with an NVIDIA GPU: all kernels checked, whole steps timed, a record written and drawn.
bench-gpu: ; cargo run --release --locked --quiet --features cuda -- bench gpu && $(SHIKHA) figures
# Compiled for the CPU of this machine alone; the vector code is chosen at run time anyway, so little is gained.
native: ; RUSTFLAGS="-C target-cpu=native" cargo build --release --locked
# The Rust kernel and runner of the notebooks takes some ten minutes to build, once, and what their cells depend on a few more.
notebooks: ; $(KERNEL) run $(if $(ONLY),--only $(ONLY))
notebooks-check: ; $(KERNEL) run --check $(if $(ONLY),--only $(ONLY))
notebooks-test: ; cd notebooks/kernel && cargo test --release --locked
# JUPYTER: the jupyter-lab to start. It finds the kernel under target/; nothing of the user's own set-up changes.
JUPYTER ?= jupyter-lab
# JupyterLab shows stored SVG in trusted notebooks alone; the trust is kept under target/ too.
TRUST = JUPYTER_DATA_DIR=$(CURDIR)/target/jupyter/data
jupyter:
	@command -v $(JUPYTER) > /dev/null || { echo "JupyterLab is not installed. In a virtual environment: pip install -r notebooks/requirements.txt"; exit 1; }
	$(KERNEL) warm
	$(KERNEL) install --prefix $(CURDIR)/target/jupyter
	$(TRUST) $(JUPYTER:%jupyter-lab=%jupyter-trust) notebooks/*.ipynb
	$(TRUST) JUPYTER_PATH=$(CURDIR)/target/jupyter/share/jupyter $(JUPYTER) notebooks
