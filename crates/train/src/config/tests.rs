//! The contract of the configuration file.

use thinwire_collective::AllReduceSpec;

use super::*;

const SMALL: &str = r#"
[run]
dir = "runs/small"

[model]
family = "gpt2"
layers = 4
hidden = 64
heads = 4

[data]
train = "train.txt"

[train]
steps = 10
"#;

const FULL: &str = r#"
[run]
dir = "runs/full"
seed = 7

[model]
family = "llama"
layers = 4
hidden = 64
heads = 4
kv_heads = 2
ffn = 192
context = 128
tie_embeddings = false
norm_eps = 1e-6
rope_theta = 5e5
rope_scaling = { type = "llama3", factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = 64 }
vocab = 320

[data]
train = "train.txt"
heldout = "heldout.txt"
tokenizer = "tokenizer.json"
format = "alpaca"
field = "text"
columns = ["question", "context", "answer"]
packing = "pad"
end_of_text = "</s>"
template = "chat.jinja"
date = "2025-01-31"
damaged = 0.5
cache = "tokens"

[train]
steps = 10
dtype = "bf16"
gradient_checkpointing = true
sequence = 128
micro_batch = 2
micro_batches = 3

[optimizer]
learning_rate = 1e-3
beta1 = 0.8
beta2 = 0.99
epsilon = 1e-7
weight_decay = 0.0
clip_norm = 0
schedule = "linear"
warmup_steps = 2
final_ratio = 0.0

[eval]
every = 5
tokens = 1000
micro_batch = 4

[pipeline]
stages = 3
schedule = "gpipe"
layers = ["embed 0-1", "2", "3 head"]
forward = "tah:g=32,a=32,p=0.5,hi=4,lo=3,tau=2"
backward = "fixed:bits=8,group=32"
tied = "bf16"
codec_threads = 2
bandwidth = "100mbit"
latency = "20ms"
deadline_seconds = 30
connect_seconds = 5
non_finite = "skip-step"

[pipeline.memory]
place = "file"
limit = "2GB"
dir = "memory"

[[pipeline.boundary]]
before = 2
forward = "raw:dtype=bf16"
bandwidth = 1000000
latency = "1.5s"

[tensor_parallel]
ranks = 2
all_reduce = "echo:bits=4,group=64"
gradients = "bf16"

[[stage]]
address = "10.0.0.1:7000"
key = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

[[stage]]
address = "[::1]:7000"
key = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

[[stage]]
address = "c.example:7000"
key = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

[checkpoint]
every = 5
keep = 3

[metrics]
error_every = 1
trace = true
tensorboard = false
"#;

fn parse(text: &str, overrides: &[&str]) -> Result<Config, ConfigError> {
    Config::parse(text, &overrides.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
}

/// The whole chain of an error, as the command line prints it.
fn message(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", message(source)),
        None => error.to_string(),
    }
}

#[test]
fn defaults_are_complete_and_valid() {
    let config = parse(SMALL, &[]).unwrap();
    assert_eq!(config.model.ffn(), 256);
    assert_eq!(config.data.tokenizer, TokenizerSource::Byte);
    assert_eq!(config.pipeline.layers, LayerPlan::Auto);
    assert_eq!(config.pipeline.manual_map(4).unwrap(), None);
    assert_eq!(config.optimizer, OptimizerConfig::default());
}

#[test]
fn every_key_of_the_contract_is_read() {
    let config = parse(FULL, &[]).unwrap();
    assert_eq!(config.model.rope_theta(), 5e5);
    assert_eq!(config.pipeline.boundary(2).bandwidth, Bandwidth::new(1_000_000));
    assert_eq!(config.pipeline.boundary(2).forward.to_string(), "raw:dtype=bf16");
    assert_eq!(config.pipeline.boundary(2).backward, config.pipeline.backward);
    assert_eq!(config.pipeline.boundary(3).bandwidth, Bandwidth::new(100_000_000));
    let latencies =
        [2, 3].map(|before| config.pipeline.boundary(before).latency.unwrap().duration().as_millis());
    assert_eq!(latencies, [1500, 20]);
    assert_eq!(config.pipeline.manual_map(4).unwrap().unwrap().boundaries(), [2, 3]);
    let memory =
        MemoryConfig { place: MemoryPlace::File, limit: ByteSize(2_000_000_000), dir: Some("memory".into()) };
    assert_eq!(config.pipeline.memory, memory);

    let TensorParallelConfig { ranks, all_reduce, gradients } = config.tensor_parallel;
    let echo = "echo:bits=4,group=64,quantizer=zero-aware,compensate=true,early=4";
    assert_eq!((ranks, all_reduce.to_string(), gradients), (2, echo.to_owned(), Some(AllReduceSpec::Bf16)));

    // Each known key occurs in the text above, and the check of keys knows no other.
    let table: toml::Table = FULL.parse().unwrap();
    for key in keys::known_keys::<Config>() {
        let mut value = Some(&toml::Value::Table(table.clone())).cloned();
        for name in key.split('.') {
            value = value.and_then(|value| {
                let value = value.as_array().and_then(|items| items.first()).unwrap_or(&value);
                value.get(name).cloned()
            });
        }
        // Left out above: what is inherited, what is derived, what needs a model on disk, what excludes `steps`.
        let left_out = ["pipeline.boundary.backward", "model.head_dim", "model.pretrained", "train.epochs"];
        let left_out = left_out.contains(&&*key) || key.starts_with("lora");
        assert!(value.is_some() || left_out, "{key} is not in the full example");
    }
}

#[test]
fn written_configurations_read_back_equal() {
    for text in [SMALL, FULL] {
        let config = parse(text, &[]).unwrap();
        assert_eq!(parse(&config.to_toml().unwrap(), &[]).unwrap(), config);
    }
}

#[test]
fn overrides_replace_and_add_keys() {
    let config = parse(
        SMALL,
        &[
            "train.steps=20",
            "pipeline.stages=2",
            "pipeline.forward=fixed:bits=8,group=32",
            "run.dir=elsewhere",
        ],
    )
    .unwrap();
    assert_eq!(config.train.steps, 20);
    assert_eq!(config.pipeline.stages, 2);
    assert_eq!(config.pipeline.forward.to_string(), "fixed:bits=8,group=32");
    assert_eq!(config.run.dir, Path::new("elsewhere"));
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    for (key, nearest) in [
        ("train.stpes=1", "train.stpes: unknown key; did you mean train.steps?"),
        ("optimizer.lr=1", "optimizer.lr: unknown key; did you mean optimizer.learning_rate?"),
        ("lora.lora_alpha=1", "lora.lora_alpha: unknown key; the keys of lora are rank, alpha, targets"),
        ("trian.steps=1", "trian: unknown key; did you mean train?"),
        ("train.learning_rate=1", "train.learning_rate: unknown key; did you mean optimizer.learning_rate?"),
        (
            "pipeline.boundary=[{befor=1}]",
            "pipeline.boundary.befor: unknown key; did you mean pipeline.boundary.before?",
        ),
        ("stage=[{adress='a:1'}]", "stage.adress: unknown key; did you mean stage.address?"),
        (
            "tensor_parallel.all_redcue='bf16'",
            "tensor_parallel.all_redcue: unknown key; did you mean tensor_parallel.all_reduce?",
        ),
    ] {
        assert_eq!(message(&parse(SMALL, &[key]).unwrap_err()), nearest);
    }
}

#[test]
fn wrong_types_and_forms_are_refused_with_their_key() {
    for (value, expected) in [
        ("train.steps=\"many\"", "train.steps: invalid type: string \"many\", expected u64"),
        ("train.steps=-1", "train.steps: invalid value: integer `-1`, expected u64"),
        (
            "model.family=bert",
            "model.family: unknown variant `bert`, expected one of `gpt2`, `llama`, `qwen2`",
        ),
        (
            "pipeline.layers=some",
            "pipeline.layers: invalid value: string \"some\", expected \"auto\" or a list",
        ),
        ("pipeline.layers=['head 0']", "pipeline.layers[0]: `head 0`: expected `embed`, blocks such as"),
        ("pipeline.bandwidth=fast", "pipeline.bandwidth: `fast`: expected a bandwidth"),
        ("pipeline.bandwidth=0", "pipeline.bandwidth: `0`: expected a bandwidth"),
        ("pipeline.forward=zip", "pipeline.forward: "),
        ("pipeline.memory.limit=lots", "pipeline.memory.limit: `lots`: expected a whole number of B, kB"),
        (
            "pipeline.memory.place=disk",
            "pipeline.memory.place: unknown variant `disk`, expected `ram` or `file`",
        ),
        (
            "stage=[{address='a:1',key='rsa:a'}]",
            "stage[0].key: key \"rsa:a\": expected \"ed25519:\" and 32 bytes",
        ),
        ("pipeline.non_finite=ignore", "pipeline.non_finite: unknown variant `ignore`"),
        ("tensor_parallel.all_reduce=ekho", "tensor_parallel.all_reduce: unknown all-reduce `ekho`"),
        (
            "tensor_parallel.gradients=echo:bit=4",
            "tensor_parallel.gradients: unknown setting of echo `bit`: did you mean `bits`?",
        ),
    ] {
        let error = message(&parse(SMALL, &[value]).unwrap_err());
        assert!(error.starts_with(expected), "{value}: {error}");
    }
    let error = message(&parse(&SMALL.replace("steps = 10", ""), &[]).unwrap_err());
    assert_eq!(error, "train.steps = 0: expected at least 1, or train.epochs");
    let error = message(&parse("[run]\ndir = 'x'", &[]).unwrap_err());
    assert_eq!(error, "missing field `model`");
    let error = message(&parse("[run", &[]).unwrap_err());
    assert!(error.starts_with("not valid TOML: TOML parse error at line 1"), "{error}");
}

#[test]
fn gradients_are_added_up_as_activations_unless_told_otherwise() {
    let gradients = |sets: &[&str]| parse(SMALL, sets).unwrap().tensor_parallel.gradients().to_string();
    assert_eq!(gradients(&[]), "exact");
    assert_eq!(gradients(&["tensor_parallel.all_reduce=bf16"]), "bf16");
    let own = ["tensor_parallel.all_reduce=bf16", "tensor_parallel.gradients=exact"];
    assert_eq!(gradients(&own), "exact");
}

#[test]
fn gradients_are_not_remembered() {
    for (text, value, key) in [
        (SMALL, "pipeline.backward=aqsgd", "pipeline.backward"),
        (SMALL, "pipeline.tied=aqsgd", "pipeline.tied"),
        (FULL, "pipeline.boundary=[{before=2,backward='aqsgd'}]", "pipeline.boundary[0].backward"),
    ] {
        let error = message(&parse(text, &[value]).unwrap_err());
        let expected = "aqsgd:bits=4,group=64,keep=f32,first=f32: expected a codec of single tensors, as aqsgd is for \
                        activations alone: fixed:bits=8 is what its authors use for gradients";
        assert_eq!(error, format!("{key} = {expected}"));
    }
    assert!(parse(FULL, &["pipeline.boundary=[{before=2,forward='aqsgd'}]"]).is_ok());
}

#[test]
fn values_out_of_range_are_refused_with_key_value_and_expectation() {
    for (text, value, expected) in [
        (SMALL, "model.layers=0", "model.layers = 0: expected from 1 to 65536"),
        (SMALL, "model.heads=3", "model.heads = 3: expected a divisor of model.hidden = 64"),
        (SMALL, "model.heads=0", "model.heads = 0: expected a divisor of model.hidden = 64"),
        (SMALL, "model.kv_heads=2", "model.kv_heads = 2: expected no value, or model.heads, for family gpt2"),
        (SMALL, "model.rope_theta=1e4", "model.rope_theta = 10000: expected no value for family gpt2"),
        (FULL, "model.kv_heads=3", "model.kv_heads = 3: expected a divisor of model.heads = 4"),
        (FULL, "model.heads=64", "model.heads = 64: expected an even model.hidden / model.heads"),
        (
            FULL,
            "model.norm_eps=nan",
            "model.norm_eps = NaN: expected a positive number below 1 that f32 can hold",
        ),
        (SMALL, "train.steps=0", "train.steps = 0: expected at least 1, or train.epochs"),
        (SMALL, "train.epochs=0", "train.epochs = 0: expected at least 1"),
        (SMALL, "train.epochs=2", "train.steps = 10: expected none beside train.epochs"),
        (SMALL, "train.sequence=2000", "train.sequence = 2000: expected at most model.context = 1024"),
        (SMALL, "train.micro_batches=0", "train.micro_batches = 0: expected from 1 to 16777216"),
        (
            SMALL,
            "optimizer.beta2=1",
            "optimizer.beta2 = 1: expected a number of at least 0 that is below 1 in f32 too",
        ),
        (
            SMALL,
            "optimizer.learning_rate=inf",
            "optimizer.learning_rate = inf: expected a positive number that f32 can hold",
        ),
        (
            SMALL,
            "model.vocab=9223372036854775807",
            "model.vocab = 9223372036854775807: expected from 1 to 16777216",
        ),
        (
            SMALL,
            "optimizer.beta2=0.99999999",
            "optimizer.beta2 = 0.99999999: expected a number of at least 0 that is below 1 in f32 too",
        ),
        (
            SMALL,
            "optimizer.epsilon=1e-46",
            "optimizer.epsilon = 0.0000000000000000000000000000000000000000000001: expected a positive number that f32 can hold",
        ),
        (
            SMALL,
            "optimizer.weight_decay=1e308",
            "optimizer.weight_decay = 100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000: expected 0, or a positive number that f32 can hold",
        ),
        (
            SMALL,
            "model.norm_eps=1e308",
            "model.norm_eps = 100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000: expected a positive number below 1 that f32 can hold",
        ),
        (SMALL, "eval.micro_batch=0", "eval.micro_batch = 0: expected from 1 to 16777216"),
        (SMALL, "pipeline.stages=0", "pipeline.stages = 0: expected from 1 to 6"),
        (SMALL, "pipeline.stages=7", "pipeline.stages = 7: expected from 1 to 6"),
        (SMALL, "pipeline.codec_threads=0", "pipeline.codec_threads = 0: expected from 1 to 1024"),
        (FULL, "pipeline.latency=30s", "pipeline.latency = 30s: expected below pipeline.deadline_seconds"),
        (SMALL, "pipeline.deadline_seconds=0", "pipeline.deadline_seconds = 0: expected above 0"),
        (SMALL, "pipeline.connect_seconds=nan", "pipeline.connect_seconds = NaN: expected above 0"),
        (
            FULL,
            "pipeline.stages=2",
            "pipeline.layers = 3 entries: expected one for each of pipeline.stages = 2",
        ),
        (FULL, "model.layers=5", "pipeline.layers: block 4 is on no stage"),
        (SMALL, "pipeline.boundary=[{before=2}]", "pipeline.boundary[0].before = 2: expected a written"),
        (
            FULL,
            "pipeline.boundary=[{before=1}]",
            "pipeline.boundary[0].before = 1: expected a boundary of pipeline.layers: [2, 3]",
        ),
        (
            FULL,
            "pipeline.boundary=[{before=2},{before=2}]",
            "pipeline.boundary[1].before = 2: expected each boundary once",
        ),
        (
            SMALL,
            "stage=[{address='a:1',key='ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='},{address='b:1',key='ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='}]",
            "stage = 2 entries: expected one [[stage]] for each of pipeline.stages = 1, or none",
        ),
        (
            SMALL,
            "stage=[{address='nowhere',key='ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='}]",
            "stage[0].address = nowhere: expected host:port",
        ),
        (
            SMALL,
            "stage=[{address='a:0',key='ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='}]",
            "stage[0].address = a:0: expected host:port",
        ),
    ] {
        let error = message(&parse(text, &[value]).unwrap_err());
        assert!(error.starts_with(expected), "{value}: {error}");
    }
}

#[test]
fn ranks_that_do_not_divide_the_heads_are_refused_with_those_that_do() {
    for (text, ranks, allowed, kv_heads) in
        [(FULL, 4, "1, 2", 2), (SMALL, 0, "1, 2, 4", 4), (SMALL, 3, "1, 2, 4", 4)]
    {
        let error = message(&parse(text, &[&format!("tensor_parallel.ranks={ranks}")]).unwrap_err());
        let expected = format!(
            "tensor_parallel.ranks = {ranks}: expected one of {allowed}, which divide model.heads = 4 and model.kv_heads = \
             {kv_heads}"
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn the_vocabulary_may_be_padded_but_not_cut() {
    let model = parse(FULL, &[]).unwrap().model;
    assert_eq!(model.vocab(300).unwrap(), 320);
    let error = model.vocab(321).unwrap_err().to_string();
    assert_eq!(error, "model.vocab = 320: expected at least the tokenizer's 321");
}

#[test]
fn loaded_paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    fs::write(&path, FULL).unwrap();
    let config = Config::load(&path, &["data.heldout=/abs/heldout.txt".to_owned()]).unwrap();
    assert_eq!(config.run.dir, folder.path().join("runs/full"));
    assert_eq!(config.data.train.0, [folder.path().join("train.txt")]);
    assert_eq!(config.data.heldout.unwrap().0, [Path::new("/abs/heldout.txt")]);
    assert_eq!(config.data.tokenizer, TokenizerSource::File(folder.path().join("tokenizer.json")));

    let error = Config::load(&path, &["train.steps=0".to_owned()]).unwrap_err();
    assert!(message(&error).contains("run.toml: train.steps = 0"), "{}", message(&error));
    let error = Config::load(&folder.path().join("absent.toml"), &[]).unwrap_err();
    assert!(message(&error).contains("absent.toml: No such file"), "{}", message(&error));
}

#[test]
fn head_sizes_and_rope_scalings_out_of_range_are_refused() {
    for (text, value, expected) in [
        (FULL, "model.head_dim=7", "model.head_dim = 7: expected an even number, for rotary pairs"),
        (
            FULL,
            "model.head_dim=16777216",
            "model.heads * model.head_dim = 67108864: expected from 1 to 16777216",
        ),
        (SMALL, "model.head_dim=8", "model.head_dim = 8: expected no value, or model.hidden / model.heads"),
        (
            SMALL,
            "model.rope_scaling={type='linear',factor=2.0}",
            "model.rope_scaling = Linear { factor: 2.0 }: expected no value for family gpt2",
        ),
        (
            FULL,
            "model.rope_scaling={type='linear',factor=0.5}",
            "model.rope_scaling.factor = 0.5: expected a number of at least 1",
        ),
        (
            FULL,
            "model.rope_scaling={type='llama3',factor=8,low_freq_factor=2,high_freq_factor=2,original_context=8}",
            "model.rope_scaling.high_freq_factor = 2: expected a number above low_freq_factor = 2",
        ),
        (
            FULL,
            "model.rope_scaling={type='llama3',factor=8,low_freq_factor=1,high_freq_factor=2,original_context=0}",
            "model.rope_scaling.original_context = 0: expected from 1 to 16777216",
        ),
    ] {
        let error = message(&parse(text, &[value]).unwrap_err());
        assert!(error.starts_with(expected), "{value}: {error}");
    }
}

#[test]
fn rope_scalings_have_the_numbers_of_their_type() {
    const LLAMA3: &str = "model.rope_scaling={type='llama3',factor=8,low_freq_factor=1,high_freq_factor=4,\
                          original_context=8192}";
    for family in ["model.family=llama", "model.family=qwen2", "model.family=qwen3"] {
        let config = parse(FULL, &[LLAMA3, family, "model.head_dim=24"]).unwrap();
        let expected = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192,
        };
        assert_eq!((config.model.rope_scaling, config.model.head_dim()), (Some(expected), 24));
        assert_eq!(parse(&config.to_toml().unwrap(), &[]).unwrap(), config);
    }
    for (value, expected) in [
        ("{type='linear',factor=2,original_context=8}", "type linear has a factor and nothing else"),
        (
            "{type='llama3',factor=2}",
            "type llama3 needs low_freq_factor, high_freq_factor and original_context",
        ),
        ("{type='yarn',factor=2}", "unknown variant `yarn`, expected `linear` or `llama3`"),
        ("{type='linear',factors=2}", "model.rope_scaling.factors: unknown key; did you mean"),
    ] {
        let error = message(&parse(FULL, &[&format!("model.rope_scaling={value}")]).unwrap_err());
        assert!(error.contains("model.rope_scaling") && error.contains(expected), "{value}: {error}");
    }
}
