//! Agreement along the chain: a message that grows from the first stage to the last, and one answer that comes back.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::PipelineError;
use super::frames::{Body, FrameKey};
use super::inbox::Inbox;
use super::neighbor::Neighbor;
use super::tied::Share;

/// The stage's place in the chain.
#[derive(Debug, Default)]
pub(crate) struct Neighbors {
    pub(crate) previous: Option<Neighbor>,
    pub(crate) next: Option<Neighbor>,
}

impl Neighbors {
    /// Passes `Up` along the chain, each stage adding to it in `contribute` (whose `Option` is `None` on the first stage);
    /// the last stage turns it into the `Down` that every stage returns.
    pub(crate) fn agree<Up, Down>(
        &self,
        inbox: &mut Inbox,
        key: FrameKey,
        contribute: impl FnOnce(&mut Inbox, Option<Up>) -> Up,
        decide: impl FnOnce(Up) -> Result<Down, PipelineError>,
    ) -> Result<Down, PipelineError>
    where
        Up: Serialize + DeserializeOwned,
        Down: Serialize + DeserializeOwned,
    {
        let from_below = match &self.previous {
            Some(previous) => Some(receive(inbox, previous, key)?),
            None => None,
        };
        let up = contribute(inbox, from_below);
        let down = match &self.next {
            Some(next) => {
                send(inbox, next, key, &up)?;
                receive(inbox, next, key)?
            }
            None => decide(up)?,
        };
        if let Some(previous) = &self.previous {
            send(inbox, previous, key, &down)?;
        }
        Ok(down)
    }

    /// Both neighbours that exist.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Neighbor> {
        self.previous.iter().chain(&self.next)
    }

    /// Both neighbours that exist, to be ended.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = Neighbor> {
        self.previous.into_iter().chain(self.next)
    }
}

fn send(
    inbox: &mut Inbox,
    to: &Neighbor,
    key: FrameKey,
    message: &impl Serialize,
) -> Result<(), PipelineError> {
    let bytes = postcard::to_stdvec(message).expect("control messages are plain data");
    if to.send_control(key, bytes) { Ok(()) } else { Err(inbox.failure()) }
}

fn receive<T: DeserializeOwned>(
    inbox: &mut Inbox,
    from: &Neighbor,
    key: FrameKey,
) -> Result<T, PipelineError> {
    match inbox.wait(from, key)? {
        Body::Control(bytes) => postcard::from_bytes(&bytes).map_err(|source| PipelineError::Control {
            peer: from.peer(),
            frame: key,
            source,
        }),
        Body::Tensor { .. } | Body::Poisoned => unreachable!("the key names a control frame"),
    }
}

/// What goes up at the end of a step.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StepUp {
    /// `sum g^2` of each parameter that is trained, from the model's first to its last.
    pub(crate) square_norms: Vec<f64>,
    /// Why the step is lost, if it is.
    pub(crate) lost: Option<String>,
    /// The first stage's share in a tied matrix's gradient.
    pub(crate) tied: Option<Share>,
}

/// What comes down at the end of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StepDown {
    /// Mean loss of the step's tokens.
    pub(crate) loss: f64,
    /// Global gradient norm before clipping.
    pub(crate) norm: f64,
    /// Why the step is lost, if it is.
    pub(crate) lost: Option<String>,
    /// The head's share of a tied matrix's gradient, encoded.
    #[serde(with = "serde_bytes")]
    pub(crate) tied_gradient: Option<Vec<u8>>,
}

/// The result of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EvalDown {
    /// Sum of the tokens' losses, in nats.
    pub(crate) loss_sum: f64,
    /// Tokens evaluated.
    pub(crate) tokens: u64,
}
