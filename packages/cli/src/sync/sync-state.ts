import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { TuttiError, type BlobId } from '@tutti/core'
import { sqliteFull } from '../workspace/explain-refusal.ts'
import type { PathState } from './path-state.ts'

/** The folder of a synced folder that is ours, in both directions: nothing in it is ever sent, nothing of the agent's written there. */
export const stateFolder = '.tutti'

/** What the last sync knew of one path. Keys are path keys. */
export interface KnownState {
  readonly remote: PathState
  readonly base: PathState
}

/** Deletions of the user's that go on. */
export interface Deletions {
  /** When the last was sent, in milliseconds; `Infinity` while it is asked whether more may be. */
  readonly lastMs: number
  /** How many paths are at stake: those agreed on when the deletions began, and what the agent has brought or taken away since. */
  readonly before: number
  /** Those of them that are in the folder no more. */
  readonly gone: readonly string[]
}

/** What is known of a synced folder, durable from one run to the next. All that belongs together is written in one step. */
export interface SyncState {
  /** Folder for files that are not finished; on the same file system as the rest. */
  readonly temporaries: string
  /** Position of the agent's log up to which `remote` is known; undefined before the first reading of the workspace was whole. */
  offset(): string | undefined
  get(key: string): KnownState
  keys(): string[]
  /** What was about to be placed, or removed, and was not noted since: whether it was is not known. */
  placing(): (readonly [key: string, state: PathState])[]
  /** Whether the sandbox may still say of this path what it knew before the user's change. */
  isPending(key: string): boolean
  /** Changes of the user's that the sandbox cannot have: each path, and why. */
  failures(): (readonly [key: string, detail: string])[]
  /** Paths below this one that the agent's workspace has. */
  below(key: string): string[]
  /** How many paths are agreed on. */
  agreed(): number
  deletions(): Deletions | undefined
  isAtStake(key: string): boolean
  /** Runs the changes as one step. */
  change(work: (write: StateWriter) => void): void
  close(): void
}

export interface StateWriter {
  offset(offset: string): void
  remote(key: string, state: PathState): void
  base(key: string, state: PathState): void
  placing(key: string, state: PathState): void
  clearPlacing(): void
  /** A change of the user's is in the log; `acked` says that the sandbox has it. */
  pending(commandId: string, key: string): void
  acked(commandId: string): void
  failed(commandId: string, key: string, detail: string): void
  clearPending(): void
  /** All that is agreed on now is at stake. */
  deletionsBegin(atMs: number): void
  deletionsAt(atMs: number): void
  deletionsAllowed(): void
  /** What the agent has brought is at stake too while deletions go on, and what it has taken away no longer. */
  atStake(key: string, isThere: boolean): void
}

/**
 * Opens, or makes, the state in `folder`. It is held until it is closed or the process ends, however that happens.
 *
 * @throws TuttiError `failed_precondition` while another sync has it, for the folder of another agent, and for one that is not empty and
 *   was never synced.
 */
export function openSyncState(folder: string, bcId: string): SyncState {
  mkdirSync(folder, { recursive: true })
  const own = join(folder, stateFolder)
  const isNew = lstatSync(own, { throwIfNoEntry: false }) === undefined
  if (isNew) checkEmpty(folder)
  mkdirSync(own, { recursive: true, mode: 0o700 })
  if (!lstatSync(own).isDirectory())
    throw refused(folder, `${own} is not a folder.`, `remove it, or ${another}`)
  // The user's git has nothing to do with it.
  writeFileSync(join(own, '.gitignore'), '*\n')
  const db = openDatabase(join(own, 'sync.sqlite'), folder)
  const owner = db.prepare('SELECT value FROM facts WHERE name = ?').get('agent')?.['value']
  if (owner !== undefined && owner !== bcId) {
    db.close()
    throw refused(folder, `The folder ${folder} is in step with ${String(owner)}.`, another)
  }
  db.prepare("INSERT OR REPLACE INTO facts VALUES ('agent', ?)").run(bcId)
  const temporaries = join(own, 'tmp')
  rmSync(temporaries, { recursive: true, force: true })
  mkdirSync(temporaries)

  const read = {
    offset: db.prepare("SELECT value FROM facts WHERE name = 'offset'"),
    path: db.prepare('SELECT remote_mode, remote_hash, base_mode, base_hash FROM paths WHERE key = ?'),
    keys: db.prepare('SELECT key FROM paths'),
    placing: db.prepare('SELECT key, mode, hash FROM placing'),
    pending: db.prepare('SELECT 1 FROM pending WHERE key = ? LIMIT 1'),
    failures: db.prepare('SELECT key, detail FROM failed JOIN pending USING (command_id, key)'),
    agreed: db.prepare('SELECT count(*) AS count FROM paths WHERE base_mode IS NOT NULL'),
    deletionsAt: db.prepare("SELECT value FROM facts WHERE name = 'deletions_at'"),
    before: db.prepare('SELECT count(*) AS count FROM at_stake'),
    gone: db.prepare('SELECT key FROM at_stake LEFT JOIN paths USING (key) WHERE base_mode IS NULL'),
    isAtStake: db.prepare('SELECT 1 FROM at_stake WHERE key = ?'),
    // '0' comes after '/'.
    below: db.prepare(
      "SELECT key FROM paths WHERE key > ?1 || '/' AND key < ?1 || '0' AND remote_mode IS NOT NULL",
    ),
  }
  const write = {
    offset: db.prepare("INSERT OR REPLACE INTO facts VALUES ('offset', ?)"),
    remote: db.prepare(
      'INSERT INTO paths (key, remote_mode, remote_hash) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET remote_mode = excluded.remote_mode, remote_hash = excluded.remote_hash',
    ),
    base: db.prepare(
      'INSERT INTO paths (key, base_mode, base_hash) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET base_mode = excluded.base_mode, base_hash = excluded.base_hash',
    ),
    forget: db.prepare('DELETE FROM paths WHERE key = ? AND remote_mode IS NULL AND base_mode IS NULL'),
    placing: db.prepare('INSERT OR REPLACE INTO placing VALUES (?, ?, ?)'),
    clearPlacing: db.prepare('DELETE FROM placing'),
    pending: db.prepare('INSERT OR REPLACE INTO pending VALUES (?, ?)'),
    acked: db.prepare('DELETE FROM pending WHERE command_id = ?'),
    triedAnew: db.prepare('DELETE FROM failed WHERE key = ? AND command_id <> ?'),
    failed: db.prepare('INSERT OR REPLACE INTO failed VALUES (?, ?, ?)'),
    clear: db.prepare('DELETE FROM pending'),
    deletionsAt: db.prepare("INSERT OR REPLACE INTO facts VALUES ('deletions_at', ?)"),
    deletionsOver: db.prepare("DELETE FROM facts WHERE name = 'deletions_at'"),
    nothingAtStake: db.prepare('DELETE FROM at_stake'),
    allAtStake: db.prepare('INSERT INTO at_stake SELECT key FROM paths WHERE base_mode IS NOT NULL'),
    atStake: db.prepare(
      "INSERT OR IGNORE INTO at_stake SELECT ? WHERE EXISTS (SELECT 1 FROM facts WHERE name = 'deletions_at')",
    ),
    notAtStake: db.prepare('DELETE FROM at_stake WHERE key = ?'),
  }
  const fields = (state: PathState): [SQLInputValue, SQLInputValue] => [
    state?.mode ?? null,
    state && 'hash' in state ? state.hash : null,
  ]
  const writer: StateWriter = {
    offset: (offset) => void write.offset.run(offset),
    remote(key, state) {
      write.remote.run(key, ...fields(state))
      write.forget.run(key)
    },
    base(key, state) {
      write.base.run(key, ...fields(state))
      write.forget.run(key)
    },
    placing: (key, state) => void write.placing.run(key, ...fields(state)),
    clearPlacing: () => void write.clearPlacing.run(),
    pending(commandId, key) {
      write.pending.run(commandId, key)
      write.triedAnew.run(key, commandId)
    },
    acked: (commandId) => void write.acked.run(commandId),
    failed: (commandId, key, detail) => void write.failed.run(commandId, key, detail),
    clearPending: () => void write.clear.run(),
    deletionsBegin(atMs) {
      write.nothingAtStake.run()
      write.allAtStake.run()
      write.deletionsAt.run(String(atMs))
    },
    deletionsAt: (atMs) => void write.deletionsAt.run(String(atMs)),
    deletionsAllowed() {
      write.nothingAtStake.run()
      write.deletionsOver.run()
    },
    atStake: (key, isThere) => void (isThere ? write.atStake : write.notAtStake).run(key),
  }
  return {
    temporaries,
    offset: () => read.offset.get()?.['value'] as string | undefined,
    get(key) {
      const row = read.path.get(key)
      return {
        remote: stateOf(row?.['remote_mode'], row?.['remote_hash']),
        base: stateOf(row?.['base_mode'], row?.['base_hash']),
      }
    },
    keys: () => read.keys.all().map((row) => String(row['key'])),
    placing: () =>
      read.placing.all().map((row) => [String(row['key']), stateOf(row['mode'], row['hash'])] as const),
    isPending: (key) => read.pending.get(key) !== undefined,
    failures: () => read.failures.all().map((row) => [String(row['key']), String(row['detail'])] as const),
    agreed: () => Number(read.agreed.get()!['count']),
    deletions() {
      const at = read.deletionsAt.get()?.['value']
      if (at === undefined) return undefined
      const gone = read.gone.all().map((row) => String(row['key']))
      return { lastMs: Number(at), before: Number(read.before.get()!['count']), gone }
    },
    isAtStake: (key) => read.isAtStake.get(key) !== undefined,
    below: (key) => read.below.all(key).map((row) => String(row['key'])),
    change(work) {
      db.exec('BEGIN')
      try {
        work(writer)
        db.exec('COMMIT')
      } catch (error) {
        // A disk that is full has ended it.
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    },
    close: () => db.close(),
  }
}

function stateOf(mode: unknown, hash: unknown): PathState {
  if (typeof mode !== 'string') return undefined
  return mode === '040000' ? { mode } : { mode: mode as '100644', hash: hash as BlobId }
}

/** A repository of the user's own may be there; it is never looked at. */
function checkEmpty(folder: string): void {
  if (readdirSync(folder).every((name) => name === '.git')) return
  throw refused(folder, `Something is in ${folder}, and it is not known what of it is the agent's.`, another)
}

function openDatabase(path: string, folder: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 0 })
  try {
    // Held by the process until its end, and by nothing that could outlive it.
    db.exec('PRAGMA locking_mode = EXCLUSIVE')
    db.exec('PRAGMA journal_mode = TRUNCATE')
    db.exec('PRAGMA synchronous = NORMAL')
    db.exec('BEGIN EXCLUSIVE')
    db.exec('CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT')
    db.exec(
      'CREATE TABLE IF NOT EXISTS paths (key TEXT PRIMARY KEY, remote_mode TEXT, remote_hash TEXT, base_mode TEXT, base_hash TEXT) STRICT',
    )
    db.exec('CREATE TABLE IF NOT EXISTS pending (command_id TEXT PRIMARY KEY, key TEXT NOT NULL) STRICT')
    db.exec(
      'CREATE TABLE IF NOT EXISTS failed (command_id TEXT NOT NULL, key TEXT PRIMARY KEY, detail TEXT NOT NULL) STRICT',
    )
    db.exec('CREATE TABLE IF NOT EXISTS placing (key TEXT PRIMARY KEY, mode TEXT, hash TEXT) STRICT')
    db.exec('CREATE TABLE IF NOT EXISTS at_stake (key TEXT PRIMARY KEY) STRICT')
    db.exec('CREATE INDEX IF NOT EXISTS pending_key ON pending (key)')
    db.exec('COMMIT')
    checkFormat(db, folder)
    return db
  } catch (error) {
    db.close()
    const { errcode } = error as { errcode?: number }
    if (error instanceof TuttiError || errcode === sqliteFull) throw error
    if (errcode === 5)
      throw refused(folder, `Another sync has the folder ${folder}.`, 'end it first, or leave it to it')
    throw refused(folder, `What is known of ${folder} cannot be read: ${path}.`, another, error)
  }
}

const format = '1'

function checkFormat(db: DatabaseSync, folder: string): void {
  const found = db.prepare("SELECT value FROM facts WHERE name = 'format'").get()?.['value']
  if (found === undefined) db.prepare("INSERT INTO facts VALUES ('format', ?)").run(format)
  else if (found !== format)
    throw refused(folder, `A newer Tutti has kept ${folder} in step.`, `use that, or ${another}`)
}

const another = 'the same command with a new or an empty folder'

const refused = (folder: string, message: string, next: string, cause?: unknown) =>
  new TuttiError('failed_precondition', message, { folder, next }, cause)
