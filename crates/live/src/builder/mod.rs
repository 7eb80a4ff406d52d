//! Configuring a live session, and connecting it.

mod callbacks;
mod check;
mod connect;
mod model;
mod reactions;

use std::sync::Arc;
use std::time::Duration;

use sessile_session::{Clock, Ids, OnOverwrite, RandomIds, SessionKey, SessionService, SystemClock};
use sessile_state::State;

use crate::callbacks::Callbacks;
use crate::computed::Computed;
use crate::extract::Extractor;
use crate::fast_callbacks::FastCallbacks;
use crate::link::{Reconnect, Timing};
use crate::pattern::Pattern;
use crate::phase::{Instruction, Phase};
use crate::tool::LiveTool;
use crate::watch::KeyWatch;
use crate::wire::Setup;

/// Live sessions.
///
/// ```no_run
/// use serde_json::json;
/// use sessile_live::{KeyWatch, Live};
///
/// # async fn run() -> Result<(), sessile_live::LiveError> {
/// let session = Live::builder()
///     .instruction("You are the voice of a support desk.")
///     .on_audio(|samples| { /* play them */ })
///     .before_tool_response(|responses, state| async move {
///         for response in &responses {
///             if response.name == "verify_identity" && response.response.get("verified") == Some(&json!(true)) {
///                 state.set("identity_verified", true);
///             }
///         }
///         responses
///     })
///     .watch(KeyWatch::on("identity_verified").became_true().then(|change| async move {
///         change.state.set("greeting", "by name");
///     }))
///     .connect_google_ai("an API key")
///     .await?;
/// session.send_text("Hello!").await?;
/// session.closed().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Live;

impl Live {
    /// The default sample rate of the user's voice, in Hz.
    pub const INPUT_RATE: u32 = 16_000;
    /// The default model.
    pub const MODEL: &str = "gemini-live-2.5-flash-native-audio";

    /// Configures a session. Nothing happens before it is connected.
    pub fn builder() -> LiveBuilder {
        LiveBuilder {
            setup: Setup {
                model: Self::MODEL.to_owned(),
                input_transcription: true,
                output_transcription: true,
                resumption: true,
                ..Setup::default()
            },
            name: "live".to_owned(),
            instruction: None,
            greeting: None,
            input_rate: Self::INPUT_RATE,
            timing: Timing {
                connect: Duration::from_secs(10),
                setup: Duration::from_secs(15),
                keepalive: Duration::from_secs(20),
                write: Duration::from_secs(10),
                reconnect: Reconnect::default(),
            },
            state: State::new(),
            session: None,
            on_overwrite: None,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            fast: FastCallbacks::default(),
            callbacks: Callbacks::default(),
            tools: Vec::new(),
            computed: Vec::new(),
            watches: Vec::new(),
            patterns: Vec::new(),
            phases: Vec::new(),
            initial_phase: None,
            extractors: Vec::new(),
        }
    }
}

/// The configuration of a live session.
#[must_use = "a session begins when it is connected"]
pub struct LiveBuilder {
    setup: Setup,
    name: String,
    instruction: Option<Instruction>,
    greeting: Option<String>,
    input_rate: u32,
    timing: Timing,
    state: State,
    session: Option<(SessionService, SessionKey)>,
    on_overwrite: Option<OnOverwrite>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    fast: FastCallbacks,
    callbacks: Callbacks,
    tools: Vec<LiveTool>,
    computed: Vec<Computed>,
    watches: Vec<KeyWatch>,
    patterns: Vec<Pattern>,
    phases: Vec<Phase>,
    initial_phase: Option<String>,
    extractors: Vec<Extractor>,
}

/// The session and its connection.
impl LiveBuilder {
    /// The agent's name: the author of its stored events.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Uses this state, which the application can share, instead of a new one.
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Attaches to a stored session, which is created if it does not exist. Its state, phase,
    /// number of turns and resume handle are restored; at the end of each turn its messages, tool
    /// calls and changes of state are committed as events. `app:` and `user:` keys are shared with
    /// all other sessions.
    pub fn session(mut self, service: SessionService, key: SessionKey) -> Self {
        self.session = Some((service, key));
        self
    }

    /// What happens when a key is set after it was read, and another writer changed it in between:
    /// either it is overwritten, which the stored event and
    /// [`LiveEvent::Overwrote`](crate::LiveEvent) report; or the stored value stays, which
    /// [`LiveEvent::Conflict`](crate::LiveEvent) reports. The default is that of the service.
    /// `add`,
    /// `append` and `union` overwrite nothing, and a key that is set without being read is simply
    /// set.
    pub fn on_overwrite(mut self, on_overwrite: OnOverwrite) -> Self {
        self.on_overwrite = Some(on_overwrite);
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of ids.
    pub fn ids(mut self, ids: impl Ids + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// How a lost connection is retried.
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.timing.reconnect = reconnect;
        self
    }

    /// The interval of pings. The connection is lost when the server has sent nothing for twice
    /// this time. The default is 20 seconds.
    pub fn keepalive(mut self, time: Duration) -> Self {
        self.timing.keepalive = time;
        self
    }

    /// How long the server may take to accept a connection, and then to accept the setup. The
    /// defaults are 10 and 15 seconds.
    pub fn connect_timeout(mut self, connect: Duration, setup: Duration) -> Self {
        (self.timing.connect, self.timing.setup) = (connect, setup);
        self
    }
}

impl std::fmt::Debug for LiveBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveBuilder")
            .field("name", &self.name)
            .field("model", &self.setup.model)
            .finish_non_exhaustive()
    }
}
