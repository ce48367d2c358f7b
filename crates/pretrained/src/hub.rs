//! Models of the Hugging Face hub, through its client library and the cache that all its clients share.

use std::env;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};

use crate::folder::{self, CONFIG, INDEX, WEIGHTS};
use crate::tokenizer::{CHAT_TEMPLATE, GENERATION_CONFIG, TOKENIZER, TOKENIZER_CONFIG};
use crate::{Error, Pretrained};

impl Pretrained {
    /// Opens the model `owner/name` of the Hugging Face hub; `revision` is a branch, a tag or a commit, `main` if none.
    ///
    /// A revision that is whole in the cache is used as it is, without a connection. Otherwise what is missing is
    /// fetched into the cache. The variables of the hub's own clients apply: `HF_HOME` (the cache), `HF_ENDPOINT`,
    /// `HF_TOKEN` (for models that need permission).
    ///
    /// # Errors
    /// The name is malformed, the hub cannot be reached or refuses, or as for [`open`](Self::open).
    pub fn from_hub(model: &str, revision: Option<&str>) -> Result<Self, Error> {
        Remote::new(model, revision.unwrap_or("main"))?.open(&Cache::from_env(), env::var("HF_ENDPOINT").ok())
    }
}

/// A revision of a model.
struct Remote {
    model: String,
    revision: String,
}

impl Remote {
    fn new(model: &str, revision: &str) -> Result<Self, Error> {
        let remote = Self { model: model.into(), revision: revision.into() };
        let plain = |part: &str| {
            let characters = part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            characters && !part.is_empty() && !part.starts_with('.')
        };
        if !matches!(model.split_once('/'), Some((owner, name)) if plain(owner) && plain(name)) {
            return Err(remote.error("its name is not `owner/name`"));
        }
        if !revision.split('/').all(plain) {
            return Err(remote.error("the revision is not the name of a branch, a tag or a commit"));
        }
        Ok(remote)
    }

    fn open(&self, cache: &Cache, endpoint: Option<String>) -> Result<Pretrained, Error> {
        let folder = match self.cached(cache) {
            Some(folder) => folder,
            None => self.fetch(cache, endpoint)?,
        };
        Pretrained::open(folder)
    }

    fn repo(&self) -> Repo {
        Repo::with_revision(self.model.clone(), RepoType::Model, self.revision.clone())
    }

    /// The folder of the revision in the cache, if all files are there.
    fn cached(&self, cache: &Cache) -> Option<PathBuf> {
        let repo = cache.repo(self.repo());
        // A commit has no reference in the caches of other clients, but its folder has its name.
        let by_name = || Some(repo.pointer_path(&self.revision).join(CONFIG)).filter(|path| path.is_file());
        let config = repo.get(CONFIG).or_else(by_name)?;
        let folder = config.parent()?;
        let weights = folder::weight_files(folder).ok()?;
        let whole = folder.join(TOKENIZER).is_file() && weights.iter().all(|path| path.is_file());
        whole.then(|| folder.into())
    }

    /// Fetches what the cache lacks; gives the folder.
    fn fetch(&self, cache: &Cache, endpoint: Option<String>) -> Result<PathBuf, Error> {
        let mut builder =
            ApiBuilder::from_cache(cache.clone()).with_user_agent("thinwire", env!("CARGO_PKG_VERSION"));
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Ok(token) = env::var("HF_TOKEN") {
            builder = builder.with_token(Some(token));
        }
        let api = builder.build().map_err(self.failed("the client does not start"))?;
        let repo = api.repo(self.repo());
        let info = repo.info().map_err(self.failed("no list of its files"))?;
        let exists = |name: &str| info.siblings.iter().any(|file| file.rfilename == name);

        let config = self.get(&repo, CONFIG)?;
        let folder = config.parent().unwrap_or(Path::new(""));
        let small = [TOKENIZER, TOKENIZER_CONFIG, GENERATION_CONFIG, CHAT_TEMPLATE];
        for name in small.into_iter().filter(|name| exists(name)) {
            self.get(&repo, name)?;
        }
        if exists(WEIGHTS) {
            self.get(&repo, WEIGHTS)?;
        } else if exists(INDEX) {
            self.get(&repo, INDEX)?;
            for path in folder::weight_files(folder)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                self.get(&repo, &name)?;
            }
        } else {
            return Err(self.error("it has no weights in safetensors"));
        }
        Ok(folder.into())
    }

    fn get(&self, repo: &ApiRepo, name: &str) -> Result<PathBuf, Error> {
        repo.get(name).map_err(self.failed(&format!("`{name}` does not arrive")))
    }

    fn error(&self, what: &str) -> Error {
        let Self { model, revision } = self;
        Error::Hub { model: model.clone(), revision: revision.clone(), what: what.into(), source: None }
    }

    /// For `map_err`.
    fn failed<E: std::error::Error + Send + Sync + 'static>(&self, what: &str) -> impl FnOnce(E) -> Error {
        let (model, revision, what) = (self.model.clone(), self.revision.clone(), what.to_owned());
        move |source| Error::Hub { model, revision, what, source: Some(Box::new(source)) }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::fs;

    use super::*;

    /// Where nobody listens.
    const NOWHERE: &str = "http://127.0.0.1:9";

    /// A cache as the hub's clients lay it out, with one model at commit `c0ffee`, which `main` refers to.
    fn cache(folder: &Path) -> PathBuf {
        let model = folder.join("models--owner--small");
        let snapshot = model.join("snapshots/c0ffee");
        fs::create_dir_all(&snapshot).unwrap();
        fs::create_dir_all(model.join("refs")).unwrap();
        fs::write(model.join("refs/main"), "c0ffee").unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models/qwen3");
        for name in [CONFIG, WEIGHTS] {
            fs::copy(fixture.join(name), snapshot.join(name)).unwrap();
        }
        fs::write(snapshot.join(TOKENIZER), "{}").unwrap();
        snapshot
    }

    fn open(folder: &Path, revision: &str) -> Result<Pretrained, Error> {
        let remote = Remote::new("owner/small", revision)?;
        remote.open(&Cache::new(folder.into()), Some(NOWHERE.into()))
    }

    #[test]
    fn a_whole_revision_in_the_cache_needs_no_connection() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = cache(folder.path());
        for revision in ["main", "c0ffee"] {
            assert_eq!(open(folder.path(), revision).unwrap().path(), snapshot);
        }
    }

    #[test]
    fn an_unreachable_hub_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = cache(folder.path());
        fs::remove_file(snapshot.join(WEIGHTS)).unwrap();
        for revision in ["main", "v2"] {
            let error = open(folder.path(), revision).unwrap_err();
            let expected = format!(
                "cannot fetch `owner/small` (revision `{revision}`) from the Hugging Face hub: no list of its files"
            );
            assert_eq!(error.to_string(), expected);
            assert!(error.source().is_some());
        }
    }

    #[test]
    fn names() {
        for (model, revision) in [("small", "main"), ("../x", "main"), ("a/b/c", "main"), ("a/..", "main")] {
            let error = Remote::new(model, revision).err().unwrap().to_string();
            assert!(error.contains("its name is not `owner/name`"), "{error}");
        }
        for revision in ["", "../x", "a//b", "a b"] {
            let error = Remote::new("a/b", revision).err().unwrap().to_string();
            assert!(error.contains("the revision is not"), "{error}");
        }
        assert!(Remote::new("Qwen/Qwen2.5-3B", "refs/pr/1").is_ok());
    }
}
