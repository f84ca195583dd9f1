//! What can be wrong with the options of a session before anything is started for it.

use std::sync::Arc;

use ennead_runtime::{
    sandbox::{SandboxNetwork, SandboxSettings},
    step1_settings_resolution::{Explained, LayerText, explain, merge},
    step5_model_call::wire_format::WireFormat,
    turn::input::SettingsRead,
};

use super::{Ennead, is_uuid, layers, place::place};
use crate::{
    options::SessionOptions,
    ports::errors::OpenError,
    turn::source_reader::FirstLook,
    world::{real_paths::RealPaths, source_files::SessionDirs},
};

/// Bytes of settings that a session keeps from its opening to its first turn; more is read again.
const MAX_KEPT: usize = 16 * 1024;

impl Ennead {
    /// Checks options as [`Ennead::open`] does before it starts anything: the id, the directory, that
    /// a model is named where none is the provider's own, and that the sandbox can be had which the
    /// settings require.
    ///
    /// # Errors
    ///
    /// [`OpenError`], of these four.
    pub async fn check(&self, options: &SessionOptions) -> Result<(), OpenError> {
        self.looked_at(options).await.map(drop)
    }

    /// Returns where each value of the settings of such a session comes from.
    ///
    /// # Errors
    ///
    /// [`OpenError`], when the directory of the session or a settings file cannot be read.
    #[doc(hidden)]
    pub async fn explain(&self, options: &SessionOptions) -> Result<Vec<Explained>, OpenError> {
        let dirs = place(&self.options.environment, options, &mut RealPaths::default())?;
        let mut all = layers(options);
        if options.reads_settings {
            let read = self.options.lookup.settings(&dirs, None).await;
            let failed = |cause| OpenError::Workspace { path: options.workspace.clone(), cause };
            if let (SettingsRead::Layers(read), _) = read.map_err(failed)? {
                all.extend(read);
            }
        }
        Ok(explain(&all))
    }

    /// Checks as [`Ennead::check`] does, and returns what was found on the way, too.
    pub(super) async fn looked_at(
        &self,
        options: &SessionOptions,
    ) -> Result<LookResult, OpenError> {
        if let Some(id) = options.id.as_ref().filter(|it| !is_uuid(it.as_str())) {
            return Err(OpenError::BadId(id.to_string()));
        }
        // On Bedrock Claude has names that no settings have by themselves.
        let has_own_names = matches!(
            options.endpoint.format,
            WireFormat::OpenAiChat | WireFormat::OpenAiResponses | WireFormat::BedrockInvoke
        ) || &*options.endpoint.provider == "bedrock-mantle";
        let has_model = !has_own_names
            || options.settings.get("model").is_some_and(serde_json::Value::is_string);
        let mut real_paths = RealPaths::by(Arc::clone(&self.options.lookup));
        let dirs = place(&self.options.environment, options, &mut real_paths)?;
        let layers = layers(options);
        let mut looked = LookResult { dirs, real_paths, layers, first: None, notice: None };
        if options.reads_settings {
            match self.options.lookup.settings(&looked.dirs, None).await {
                Ok((SettingsRead::Layers(read), seen)) => {
                    looked.first = Some(FirstLook { layers: read, seen });
                }
                // Its first run says that they cannot be read.
                Ok((SettingsRead::Unchanged, _)) | Err(_) => return Ok(looked),
            }
        }
        // Most have neither question, and merging is not for nothing.
        let (own, read) = (&looked.layers, looked.first.as_ref().map_or(&[][..], |it| &it.layers));
        let is_about_sandbox = own.iter().chain(read).any(|it| it.text.contains("\"sandbox\""));
        let merged = (!has_model || is_about_sandbox).then(|| merge(&[own, read].concat()));
        let Some(merged) = merged else { return Ok(looked) };
        looked.notice = check_sandbox(merged.settings.sandbox.clone()).await?;
        if has_model || merged.provenance.contains_key("model") {
            Ok(looked)
        } else {
            Err(OpenError::NoModel { provider: options.endpoint.provider.clone() })
        }
    }
}

/// What a look at the options of a session finds.
#[derive(Debug)]
pub(super) struct LookResult {
    /// The directories that it works with.
    pub(super) dirs: SessionDirs,
    /// Where they really are.
    pub(super) real_paths: RealPaths,
    /// The settings among its options, as a layer.
    pub(super) layers: Vec<LayerText>,
    /// What the settings files hold, where they could be read, so that the first turn need not read them
    /// again.
    pub(super) first: Option<FirstLook>,
    /// The notices that are published with the first run.
    pub(super) notice: Option<String>,
}

impl LookResult {
    /// Lets go of what was read, where that is much: a session that waits for its first prompt would keep it. To be called
    /// when nothing asks for it any more.
    pub(super) fn keep_little(&mut self) {
        self.first.take_if(|it| MAX_KEPT < it.layers.iter().map(|it| it.text.len()).sum());
    }
}

/// Whether what is asked of the sandbox can be had. A notice where it cannot and need not be.
async fn check_sandbox(settings: SandboxSettings) -> Result<Option<String>, OpenError> {
    if !settings.enabled && !settings.required {
        return Ok(None);
    }
    if !settings.unsupported.is_empty() {
        return Err(OpenError::UnsupportedSandbox { keys: settings.unsupported });
    }
    if !settings.enabled {
        let why = "`sandbox.enabled` is not true".to_owned();
        return Err(OpenError::NoSandbox { why });
    }
    // A look at the kernel may take a millisecond, once.
    let is_listed = settings.network == SandboxNetwork::Listed;
    let lacks = tokio::task::spawn_blocking(move || lacks(is_listed)).await;
    let lacks = lacks.unwrap_or_else(|it| Some(it.to_string()));
    match lacks {
        None => Ok(None),
        Some(why) if settings.required => Err(OpenError::NoSandbox { why }),
        // Every command that cannot be confined says so and does not run.
        Some(why) => {
            Ok(Some(format!("the sandbox is on, but {why}; what it is to confine does not run")))
        }
    }
}

/// Why commands cannot be confined here, if they cannot; to some hosts, where those are listed.
fn lacks(is_listed: bool) -> Option<String> {
    let kernel = ennead_tools::sandbox::kernel();
    let checked = if is_listed { kernel.check_hosts() } else { kernel.check() };
    checked.err().map(|it| it.to_string())
}
