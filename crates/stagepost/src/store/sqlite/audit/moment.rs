//! Several connections that see the store as it was at one moment.

use std::sync::Mutex;

use rusqlite::Connection;

use super::super::super::Error;
use super::super::{SqliteStore, lock, open};
use super::{begin, lost};

/// How often connections are tried to be brought to the same moment before one of them has to do.
const TRIES: usize = 50;

/// A further core is worth a further connection for each so many bytes of the store.
const BYTES_FOR_ONE: u64 = 1 << 20;

pub(super) struct Moment(Vec<Mutex<Connection>>);

impl Moment {
    pub(super) fn take(store: &SqliteStore) -> Result<Self, Error> {
        let connect = || open::connect(&store.folder, store.busy);
        let idle = lock(&store.readers).pop();
        let mut connections = vec![idle.map_or_else(connect, Ok)?];
        connections.extend((1..useful_cores(store)).map_while(|_| connect().ok()));
        for _ in 0..TRIES {
            // Everything that an audit could stumble over if it were changed in between is followed by an entry.
            let ends = connections.iter().map(begin).collect::<Result<Vec<_>, _>>();
            if ends.is_ok_and(|ends| ends.windows(2).all(|pair| pair[0] == pair[1])) {
                return Ok(Self(connections.into_iter().map(Mutex::new).collect()));
            }
            connections.iter().for_each(end);
        }
        connections.truncate(1);
        let _ = begin(&connections[0]);
        Ok(Self(connections.into_iter().map(Mutex::new).collect()))
    }

    /// Returns the first connection, for what one thread does.
    pub(super) fn connection(&self) -> std::sync::MutexGuard<'_, Connection> {
        lock(&self.0[0])
    }

    /// Runs `work` on all connections at once until each has returned.
    pub(super) fn in_parallel<T: Send>(
        &self,
        work: impl Fn(usize, &Connection) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        if let [only] = &*self.0 {
            return Ok(vec![work(0, &lock(only))?]);
        }
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = (0..self.0.len())
                .map(|index| scope.spawn(move || work(index, &lock(&self.0[index]))))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
        })
    }

    pub(super) fn give_back(self, store: &SqliteStore) {
        for connection in self.0 {
            let connection = connection.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            end(&connection);
            lock(&store.readers).push(connection);
        }
    }
}

fn useful_cores(store: &SqliteStore) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let useful = 1 + open::size_on_disk(&store.folder) / BYTES_FOR_ONE;
    usize::try_from(useful).map_or(cores, |useful| useful.min(cores))
}

fn end(connection: &Connection) {
    if !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
}
