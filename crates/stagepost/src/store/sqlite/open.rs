//! Opening the files of a store.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use rustix::fs::FlockOperation;

use super::super::Error;
use super::copies::Copies;
use super::{collect, db, head, schema};
use crate::bounded;

pub(super) const DATABASE: &str = "store.db";

/// Where SQLite writes first.
pub(super) const LOG: &str = "store.db-wal";

/// The database while it is made.
const UNFINISHED: &str = "store.db.new";

/// How a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Make the store if there is none.
    pub create: bool,
    /// How long to wait for other processes before giving up.
    pub busy: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { create: false, busy: Duration::from_secs(10) }
    }
}

/// A store that was found or made.
pub(super) struct First {
    pub(super) folder: PathBuf,
    pub(super) connection: Connection,
    /// Why there is no file for what several connections share, such as a full disk; then there is this one, and it only reads.
    pub(super) cramped: Option<Error>,
}

/// Opens the first connection, making or migrating the store if that is needed.
pub(super) fn first(folder: &Path, options: &OpenOptions) -> Result<First, Error> {
    if options.create {
        make_folder(folder)?;
    }
    let folder = fs::canonicalize(folder).map_err(failed("open the folder", folder))?;
    let database = folder.join(DATABASE);
    if options.create && !database.try_exists().map_err(failed("open", &database))? {
        make_database(&folder, options.busy)?;
    }
    refuse_if_deleted(&folder)?;
    fs::metadata(&database).map_err(failed("open", &database))?;
    let look = |connection: Connection| format_of(&connection, &database).map(|format| (connection, format));
    let (mut connection, found, cramped) = match connect(&folder, options.busy).and_then(look) {
        Err(error) if is_cramped(&error) => {
            let (connection, found) =
                connect_to(database.clone(), options.busy, Means::Alone).and_then(look)?;
            (connection, found, Some(error))
        }
        opened => opened.map(|(connection, found)| (connection, found, None))?,
    };
    if found > schema::FORMAT {
        return Err(Error::TooNew { path: database, found, known: schema::FORMAT });
    }
    if found < schema::FORMAT {
        migrate(&mut connection, &folder, options.create)?;
    }
    Ok(First { folder, connection, cramped })
}

/// Says whether there was no room for the index of the log, as on a full disk.
fn is_cramped(error: &Error) -> bool {
    let Error::Database { source, .. } = error else { return false };
    source.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

/// Opens one more connection to a store that is known to be sound.
pub(super) fn connect(folder: &Path, busy: Duration) -> Result<Connection, Error> {
    connect_to(folder.join(DATABASE), busy, Means::Shared)
}

/// Opens the connection that writes. What it writes to the log can be gathered.
pub(super) fn connect_writer(folder: &Path) -> Result<Connection, Error> {
    connect_to(
        folder.join(DATABASE),
        Duration::ZERO,
        stagepost_vfs::name().map_or(Means::Shared, Means::Through),
    )
}

/// How a connection reaches its files.
enum Means {
    /// As SQLite does by itself.
    Shared,
    /// Through a layer of this name.
    Through(&'static CStr),
    /// With the index of the log in memory: nobody else can have the store open meanwhile.
    Alone,
}

fn connect_to(path: PathBuf, busy: Duration, means: Means) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let opened = match means {
        Means::Through(layer) => Connection::open_with_flags_and_vfs(&path, flags, layer),
        Means::Shared | Means::Alone => Connection::open_with_flags(&path, flags),
    };
    let opened = opened.and_then(|connection| {
        connection.busy_timeout(busy)?;
        if matches!(means, Means::Alone) {
            connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        }
        configured(connection)
    });
    opened.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => Error::NotAStore { path },
        _ => db("open the database")(error),
    })
}

/// Makes the database beside its place and moves it there when it is whole: whoever finds the file finds a store.
fn make_database(folder: &Path, busy: Duration) -> Result<(), Error> {
    let _held = collect::hold(folder, FlockOperation::NonBlockingLockExclusive, busy)?;
    let (database, beside) = (folder.join(DATABASE), folder.join(UNFINISHED));
    if database.try_exists().map_err(failed("open", &database))? {
        return Ok(());
    }
    refuse_if_deleted(folder)?;
    remove_unfinished(folder)?;
    make_file(&beside)?;
    let mut connection = connect_to(beside.clone(), busy, Means::Shared)?;
    make_tables(&mut connection)?;
    connection.close().map_err(|(_, error)| db("make the store")(error))?;
    fs::rename(&beside, &database).map_err(failed("make", &database))?;
    sync_folder(folder)
}

/// What a process left that was killed while it made a store; and the log of a database that is gone, which would be
/// taken for the log of the new one.
fn remove_unfinished(folder: &Path) -> Result<(), Error> {
    let unfinished = ["", "-journal", "-wal", "-shm"].map(|suffix| format!("{UNFINISHED}{suffix}"));
    let orphaned = ["-wal", "-shm"].map(|suffix| format!("{DATABASE}{suffix}"));
    for name in unfinished.iter().chain(&orphaned) {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn configured(connection: Connection) -> rusqlite::Result<Connection> {
    connection.set_prepared_statement_cache_capacity(64);
    // A file that someone else wrote must not make the database do things, nor be believed without a look.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Otherwise the planner peeks at bound values, and each new one makes it prepare the statement again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(
        "PRAGMA cell_size_check = ON; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; \
         PRAGMA wal_autocheckpoint = 4000;",
    )?;
    Ok(connection)
}

/// Reads the format, and makes sure that the file is a store or an empty file that may become one.
fn format_of(connection: &Connection, path: &Path) -> Result<i64, Error> {
    let not_ours = || Error::NotAStore { path: path.to_owned() };
    // One transaction: each would take and give back the locks by itself.
    let both = || {
        let moment = connection.unchecked_transaction()?;
        let pragma = |name| moment.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let read = (pragma("user_version")?, pragma("application_id")?);
        moment.finish().map(|()| read)
    };
    let (format, application) = match both() {
        Ok(read) => read,
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            return Err(not_ours());
        }
        Err(error) => return Err(db("read the format")(error)),
    };
    match (format, application) {
        (0, 0) if is_empty(connection)? => Ok(0),
        (1.., schema::APPLICATION) => Ok(format),
        _ => Err(not_ours()),
    }
}

fn is_empty(connection: &Connection) -> Result<bool, Error> {
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(db("read the format"))?;
    Ok(tables == 0)
}

fn migrate(connection: &mut Connection, folder: &Path, create: bool) -> Result<(), Error> {
    if is_empty(connection)? {
        if !create {
            return Err(Error::NotAStore { path: folder.join(DATABASE) });
        }
        refuse_to_forget(folder)?;
    }
    make_tables(connection)?;
    sync_folder(folder)
}

/// Refuses to open a store whose database was deleted: what is noted beside it proves that there was one.
fn refuse_if_deleted(folder: &Path) -> Result<(), Error> {
    match deleted(folder) {
        Some(entries) => Err(Error::Deleted { path: folder.join(DATABASE), entries }),
        None => Ok(()),
    }
}

/// How many entries were written to a database that is gone; `None` if it is there or nothing was.
pub(super) fn deleted(folder: &Path) -> Option<u64> {
    if !matches!(folder.join(DATABASE).try_exists(), Ok(false)) {
        return None;
    }
    head::remembered(folder)
        .and_then(|(position, _)| u64::try_from(position).ok())
        .filter(|entries| *entries > 0)
}

/// Puts what a deleted database left aside, so that a new one can be made. Nothing of it is deleted: should the database
/// come back, its log is what was saved last.
pub(super) fn put_aside(folder: &Path) -> Result<(), Error> {
    for name in [LOG, head::HEAD_FILE] {
        let path = folder.join(name);
        match fs::rename(&path, folder.join(format!("{name}.gone"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("put aside", &path)(error));
            }
            _ => {}
        }
    }
    sync_folder(folder)
}

/// An empty database is no new one if something was written to it.
fn refuse_to_forget(folder: &Path) -> Result<(), Error> {
    match head::remembered(folder).filter(|(position, _)| *position > 0) {
        Some((position, _)) => {
            let what = format!("the database is empty, but {position} entries were written to it");
            Err(Error::Damaged { what })
        }
        None => Ok(()),
    }
}

/// Brings the tables to the newest format, from whichever it has.
fn make_tables(connection: &mut Connection) -> Result<(), Error> {
    if is_empty(connection)? {
        // A small checkpoint changes five pages; with small pages that is 5 KB to sync, and not 20.
        connection
            .execute_batch("PRAGMA page_size = 1024; PRAGMA auto_vacuum = INCREMENTAL;")
            .map_err(db("make the store"))?;
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(db("migrate the store"))?;
    // Another process may have done it while we waited for the lock.
    let from = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(db("migrate the store"))?;
    if from < schema::FORMAT {
        schema::migrate(&transaction, from).map_err(db("migrate the store"))?;
    }
    transaction.commit().map_err(db("migrate the store"))?;
    // Only now: a new database is whole in its one file, for closing a log says nothing of a full disk.
    connection.pragma_update(None, "journal_mode", "WAL").map_err(db("make the store"))
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            // The umask may have taken away more than we asked for.
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
                .map_err(failed("make the folder", folder))?;
            parent.map_or(Ok(()), sync_folder)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("make the folder", folder)(error)),
    }
}

/// Makes the file ourselves, because SQLite would give it the permissions of the umask, and its helpers too.
fn make_file(path: &Path) -> Result<(), Error> {
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(failed("make", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("make", path)(error)),
    }
}

/// Opens a file beside the database that only we may read, making it if there is none.
pub(super) fn private_file(path: &Path) -> Result<File, Error> {
    make_file(path)?;
    existing_file(path).map_err(failed("open", path))
}

/// Opens a file beside the database, but not through a symlink: it would be written to.
pub(super) fn existing_file(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).expect("a flag of open(2)");
    bounded::open_with(File::options().write(true).read(true), flags, path)
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(failed("sync the folder", folder))
}

/// Adds up the files of the database and the copies beside it.
pub(super) fn size_on_disk(folder: &Path) -> u64 {
    let size =
        |suffix: &str| fs::metadata(folder.join(format!("{DATABASE}{suffix}"))).map_or(0, |file| file.len());
    size("") + size("-wal") + Copies::beside(folder).size()
}

/// Names what was attempted, and on what, in an error of the operating system.
pub(super) fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing, path: path.clone(), source }
}
