//! Packs of our own in a repository's object store.
//!
//! Each has a `.keep` beside it that says whose it is: git's automatic gc does not count such packs, so ours never
//! provoke it. When snapshots are released the `.keep` files go, and the user's next gc takes what nothing needs.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::capture::CaptureError;
use super::durable;
use super::objects::ObjectKind;
use super::repository::HashKind;
use super::sink::Packed;
use super::state::Id;
use crate::bounded;
use crate::model::ObjectId;

/// The text of our `.keep` files.
pub(super) const KEEP: &[u8] = b"stagepost\n";

/// Moves a finished pack (`<base>.pack`, `<base>.idx`) into an object store; durable when it returns.
pub(super) fn adopt(base: &Path, objects_dir: &Path) -> Result<(), CaptureError> {
    let folder = folder_of(objects_dir)?;
    let name = base.file_name().unwrap_or_default();
    let sources = [".pack", ".idx"].map(|suffix| with_suffix(base, suffix));
    let open = |path: &PathBuf| File::open(path).map_err(CaptureError::io("open", path));
    let (body, index) = (open(&sources[0])?, open(&sources[1])?);
    place(&folder, &folder.join(name), [&body, &index], |suffix, target| {
        fs::rename(with_suffix(base, suffix), target)
    })
}

fn folder_of(objects_dir: &Path) -> Result<PathBuf, CaptureError> {
    let folder = objects_dir.join("pack");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(durable::mode_below(objects_dir, 0o777))
        .create(&folder)
        .map_err(CaptureError::io("make the folder", &folder))?;
    Ok(folder)
}

/// Gives a pack its name: first what marks it as ours, then the content, then the index that makes git see it.
fn place(
    folder: &Path,
    named: &Path,
    files: [&File; 2],
    mut rename: impl FnMut(&str, &Path) -> io::Result<()>,
) -> Result<(), CaptureError> {
    let keep = with_suffix(named, ".keep");
    let mode = durable::mode_below(folder, 0o644);
    let written = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&keep);
    written.and_then(|mut file| file.write_all(KEEP)).map_err(CaptureError::io("write", &keep))?;
    durable::sync_files(&files).map_err(CaptureError::io("sync a pack in", folder))?;
    for suffix in [".pack", ".idx"] {
        rename(suffix, &with_suffix(named, suffix)).map_err(CaptureError::io("move a pack to", folder))?;
    }
    durable::sync_folder(folder).map_err(CaptureError::io("sync", folder))
}

/// Adds to a path's last name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Counts the packs that someone keeps, which are at least ours.
pub(super) fn count_kept(objects_dir: &Path) -> usize {
    let entries = fs::read_dir(objects_dir.join("pack")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().as_encoded_bytes().ends_with(b".keep")).count()
}

/// Returns our packs in an object store, each without its suffix.
pub(super) fn ours(objects_dir: &Path) -> Result<Vec<PathBuf>, CaptureError> {
    Ok(marked(objects_dir)?.into_iter().filter(|pack| is_whole(pack)).collect())
}

/// Returns what is marked as a pack of ours and is none: somebody is about to make it one, or was killed in the middle.
pub(super) fn unfinished(objects_dir: &Path) -> Result<Vec<PathBuf>, CaptureError> {
    Ok(marked(objects_dir)?.into_iter().filter(|pack| !is_whole(pack)).collect())
}

/// The index comes last; without it, git sees no pack.
fn is_whole(pack: &Path) -> bool {
    fs::symlink_metadata(with_suffix(pack, ".idx")).is_ok()
}

fn marked(objects_dir: &Path) -> Result<Vec<PathBuf>, CaptureError> {
    let folder = objects_dir.join("pack");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        other => other.map_err(CaptureError::io("list", &folder))?,
    };
    let keeps = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "keep"));
    let mut packs: Vec<_> =
        keeps.filter(|path| bounded::read_file(path).is_ok_and(|text| text == KEEP)).collect();
    packs.iter_mut().for_each(|path| _ = path.set_extension(""));
    packs.sort();
    Ok(packs)
}

/// Returns the SHA-1 name of an object.
pub(super) fn sha1_name(kind: ObjectKind, bytes: &[u8]) -> ObjectId {
    ObjectId::from_bytes(&sha1_of(kind, bytes)).expect("20 bytes are a name")
}

/// Returns the SHA-1 name of an object, as bytes.
pub(super) fn sha1_of(kind: ObjectKind, bytes: &[u8]) -> Id {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(format!("{} {}\0", kind.as_str(), bytes.len()).as_bytes());
    hasher.update(bytes);
    digest(hasher)
}

/// Content made to collide has no name: zeros, which no object has.
fn digest(hasher: gix::hash::Hasher) -> Id {
    hasher.try_finalize().ok().and_then(|id| Id::try_from(id.as_slice()).ok()).unwrap_or_default()
}

/// Writes a pack of `entries`, whose bytes follow each other in `body`, and its index into an object store; durable
/// when it returns.
pub(super) fn write(
    objects_dir: &Path,
    entries: Vec<Packed>,
    body: &mut dyn Read,
) -> Result<(), CaptureError> {
    let folder = folder_of(objects_dir)?;
    let failed = || CaptureError::io("write a pack in", &folder);
    let (pack, pack_path) = beside(&folder, "tmp_pack_").map_err(failed())?;
    let (index, index_path) = beside(&folder, "tmp_idx_").map_err(failed())?;
    let checksum = write_body(&pack, entries.len(), body).map_err(failed())?;
    let name = write_index(&index, entries, checksum).map_err(failed())?;
    let mut paths = [pack_path, index_path].into_iter();
    place(&folder, &folder.join(format!("pack-{name}")), [&pack, &index], |_, target| {
        let path = paths.next().expect("a pack is two files");
        path.persist(target).map_err(|error| error.error)
    })
}

/// A file that is removed unless it gets a name; git removes those that a killed process left, by their names.
fn beside(folder: &Path, prefix: &str) -> io::Result<(File, tempfile::TempPath)> {
    let readable = fs::Permissions::from_mode(durable::mode_below(folder, 0o644));
    let file = tempfile::Builder::new().prefix(prefix).permissions(readable).tempfile_in(folder)?;
    Ok(file.into_parts())
}

fn write_body(file: &File, count: usize, body: &mut dyn Read) -> io::Result<Id> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    let mut file = io::BufWriter::with_capacity(1 << 16, file);
    let count = u32::try_from(count).map_err(|_| io::Error::other("too many objects for one pack"))?;
    let header = [&b"PACK\0\0\0\x02"[..], &count.to_be_bytes()].concat();
    hasher.update(&header);
    file.write_all(&header)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = body.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        hasher.update(&buffer[..length]);
        file.write_all(&buffer[..length])?;
    }
    let checksum = digest(hasher);
    file.write_all(&checksum)?;
    file.flush()?;
    Ok(checksum)
}

/// Writes the index of a pack, in git's version 2, and returns the pack's checksum as text: it names the pack.
fn write_index(mut file: &File, mut entries: Vec<Packed>, pack: Id) -> io::Result<String> {
    const HEADER: u64 = 12;
    entries.sort_by_key(|entry| entry.id);
    let mut bytes = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=255_u8 {
        let count = entries.partition_point(|entry| entry.id[0] <= first) as u32;
        bytes.extend_from_slice(&count.to_be_bytes());
    }
    entries.iter().for_each(|entry| bytes.extend_from_slice(&entry.id));
    entries.iter().for_each(|entry| bytes.extend_from_slice(&entry.crc.to_be_bytes()));
    let mut large = Vec::new();
    for offset in entries.iter().map(|entry| entry.offset + HEADER) {
        let short = u32::try_from(offset).ok().filter(|offset| offset >> 31 == 0).unwrap_or_else(|| {
            large.extend_from_slice(&offset.to_be_bytes());
            1 << 31 | (large.len() / 8 - 1) as u32
        });
        bytes.extend_from_slice(&short.to_be_bytes());
    }
    bytes.extend_from_slice(&large);
    bytes.extend_from_slice(&pack);
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&bytes);
    bytes.extend_from_slice(&digest(hasher));
    file.write_all(&bytes)?;
    let name = ObjectId::from_bytes(&pack).map(|id| id.to_string());
    name.ok_or_else(|| io::Error::other("a pack without a checksum"))
}

/// Picks the packs that are worth merging: all that are not larger than everything smaller together.
pub(super) fn small_ones(packs: Vec<PathBuf>) -> Vec<PathBuf> {
    let size = |pack: &PathBuf| fs::metadata(with_suffix(pack, ".pack")).map_or(0, |metadata| metadata.len());
    let mut sized: Vec<_> = packs.into_iter().map(|pack| (size(&pack), pack)).collect();
    sized.sort();
    let (mut sum, mut count) = (0, 0);
    for (position, (size, _)) in sized.iter().enumerate() {
        if position < 2 || *size <= 2 * sum {
            count = position + 1;
        }
        sum += size;
    }
    sized.into_iter().take(count).map(|(_, pack)| pack).collect()
}

/// Lists the objects of a pack, from its index; names have as many bytes as the repository's kind of hash.
pub(super) fn ids_of(pack: &Path, hash: HashKind) -> Result<Vec<ObjectId>, CaptureError> {
    let length = hash.bytes();
    let path = with_suffix(pack, ".idx");
    let bytes = bounded::read_file(&path).map_err(CaptureError::io("read", &path))?;
    let count =
        bytes.get(4 + 4 + 255 * 4..8 + 1024).and_then(|last| last.try_into().ok()).map(u32::from_be_bytes);
    let ids = count.and_then(|count| bytes.get(1032..1032 + length * count as usize));
    let ids = ids.filter(|_| bytes.starts_with(b"\xfftOc\0\0\0\x02"));
    let ids = ids.ok_or_else(|| CaptureError::io("read", &path)(io::ErrorKind::InvalidData.into()))?;
    Ok(ids.chunks_exact(length).filter_map(ObjectId::from_bytes).collect())
}

/// Removes a pack: first the index that makes git see it.
pub(super) fn remove(pack: &Path) -> Result<(), CaptureError> {
    for suffix in [".idx", ".rev", ".pack", ".keep"] {
        let path = with_suffix(pack, suffix);
        durable::remove(&path).map_err(CaptureError::io("remove", &path))?;
    }
    Ok(())
}
