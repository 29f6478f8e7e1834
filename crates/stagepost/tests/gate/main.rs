//! Gates, told as short stories through the library, on a real store.

mod answers;
mod askers;
mod journeys;
mod lifetime;
mod messages;
mod stored;
mod support;
