import type { TuttiClient } from '@tutti/client'
import { belowAny, foldersOf, TuttiError, type CrashPoint } from '@tutti/core'
import { pathBytes } from '@tutti/workspace'
import type { LocalPath, LocalScan, LocalTree } from './local-tree.ts'
import { changedMeanwhile, type Blocked, type LocalWriter } from './local-writer.ts'
import { countDeletions } from './count-deletions.ts'
import { decide } from './decide.ts'
import { foldedKey } from './namesakes.ts'
import { hashOf, sameState, type PathState } from './path-state.ts'
import { readRemote, type RemotePath } from './read-remote.ts'
import { takeEvents, type PositionedEvent } from './remote-view.ts'
import { sendChanges, type LocalChange } from './send-changes.ts'
import type { SyncNote } from './sync-note.ts'
import type { SyncState } from './sync-state.ts'

export interface FolderSyncDeps {
  readonly client: () => Promise<TuttiClient>
  readonly bcId: string
  readonly state: SyncState
  readonly tree: LocalTree
  readonly writer: LocalWriter
  /** The folder's disk takes names that differ in case, or in how letters are composed, for the same. */
  readonly ignoresCase: boolean
  /** Whether more than half of what was there may be deleted in the agent's workspace. */
  readonly allowDeletions: boolean
  readonly crashPoint: CrashPoint
  readonly note: (note: SyncNote) => void
  /** Milliseconds since the epoch: a state outlives its process. */
  readonly now: () => number
  readonly signal: AbortSignal
}

/** One folder and one agent's workspace, brought into step as often as it is asked to. */
export interface FolderSync {
  /** Reads the whole workspace, when it was never read to its end. */
  begin(): Promise<void>
  /** Takes events of the agent's log, in order. */
  take(events: readonly PositionedEvent[]): Promise<void>
  /**
   * Brings into step what the events since are about (`told`), or that and all that is different in the folder (`all`).
   *
   * @returns whether it is worth doing again at once: the log has not brought back yet what was sent (`sent`), or something was changed
   *   meanwhile (`changing`)
   */
  settle(what: 'told' | 'all'): Promise<'settled' | 'sent' | 'changing'>
  /**
   * Tells of each path that is not in step, once for each reason; at the end (`isOver`) also of what the next look would have found.
   *
   * @returns how many there are
   */
  report(isOver: boolean): number
}

/** Some files are placed before it is noted that they are there: a note costs more than a file. */
const notedAtOnce = 200

interface Take {
  readonly key: string
  readonly remote: PathState
  readonly local: LocalPath
}

export function createFolderSync(deps: FolderSyncDeps): FolderSync {
  const { client, bcId, state, tree, writer, crashPoint, note, signal } = deps
  const known = new Set(state.keys())
  let dirty = new Set<string>()
  /** Paths that were sent, and the position at which the log has them: until then what it says of them is older. */
  const sent = new Map<string, string>()
  const deletionsSent = new Set<string>()
  /** Why a path is not in step, with what to do; and what of it was told. */
  const left = new Map<string, string>()
  const told = new Map<string, string>()

  /** A content came from nowhere: it is read with the whole workspace, once for each path. */
  let needsReading = false
  const readFor = new Set<string>()

  function forgetSent(position: string): void {
    for (const [key, offset] of sent)
      if (offset <= position) {
        sent.delete(key)
        deletionsSent.delete(key)
        dirty.add(key)
      }
  }

  async function agreed(pairs: readonly (readonly [string, PathState])[], isPlaced: boolean): Promise<void> {
    if (pairs.length > 0 || isPlaced)
      await crashPoint('sync.agreed', async () =>
        state.change((write) => {
          for (const [key, at] of pairs) {
            write.base(key, at)
            if (isPlaced) write.atStake(key, at !== undefined)
          }
          if (isPlaced) write.clearPlacing()
        }),
      )
    for (const [key] of pairs) known.add(key)
  }

  /** A name that the disk would take for this one; nobody shall be overwritten by another's name. */
  function collision(key: string, names: ReadonlyMap<string, string>, { namesake }: LocalPath): Blocked {
    if (!deps.ignoresCase) return undefined
    const placed = [...foldersOf(key), key].map((part) => [part, names.get(foldedKey(part))] as const)
    const there = namesake ?? placed.find(([part, name]) => name !== undefined && name !== part)?.[1]
    if (there === undefined) return undefined
    return `its name is that of ${pathBytes(there).toString()} on a disk that ignores case; have one of them renamed`
  }

  function addNames(names: Map<string, string>, key: string): void {
    for (const part of [...foldersOf(key), key]) names.set(foldedKey(part), part)
  }

  function namesOf(keys: Iterable<string>): Map<string, string> {
    const names = new Map<string, string>()
    for (const key of keys) addNames(names, key)
    return names
  }

  /** As far as the agent's log says. A folder is empty there too when what is in it is kept no more: not to us, who keep it. */
  function remoteOf(key: string): PathState {
    const { remote } = state.get(key)
    return remote?.mode === '040000' && state.below(key).length > 0 ? undefined : remote
  }

  const inFolder = () => [...known].filter((key) => state.get(key).base !== undefined)

  /**
   * Says durably what is about to be done in the folder, does it, and notes what was done. A run that is broken off in between would leave
   * the agent's version there as if the user had written it, and it would win over the agent's next one.
   */
  async function noting<T extends Take>(
    takes: readonly T[],
    work: (take: T) => Promise<Blocked>,
  ): Promise<void> {
    for (let start = 0; start < takes.length; start += notedAtOnce) {
      const some = takes.slice(start, start + notedAtOnce)
      await crashPoint('sync.placing', async () =>
        state.change((write) => {
          for (const { key, remote } of some) write.placing(key, remote)
        }),
      )
      const done: [string, PathState][] = []
      try {
        for (const take of some) {
          const { key, remote } = take
          const problem = await work(take)
          if (problem) left.set(key, problem)
          else {
            done.push([key, remote])
            note({ kind: remote === undefined ? 'removed' : 'received', key })
          }
        }
      } finally {
        await agreed(done, true)
      }
    }
  }

  /** What a run that was killed was about to place, and what of it is there. */
  async function recall(): Promise<void> {
    const begun = state.placing()
    if (begun.length === 0) return
    const done: [string, PathState][] = []
    for (const [key, placing] of begun) {
      const local = await tree.look(key)
      if (!local.unknown && sameState(local.state, placing)) done.push([key, placing])
    }
    await agreed(done, true)
  }

  /** Paths of the agent's that go into the folder: what goes makes room first. */
  async function receive(takes: readonly Take[]): Promise<void> {
    const gone = takes.filter(({ remote }) => remote === undefined).sort((a, b) => (a.key < b.key ? 1 : -1))
    const there = takes.filter(({ remote }) => remote !== undefined).sort((a, b) => (a.key < b.key ? -1 : 1))
    await noting(gone, ({ key, local }) => writer.remove(key, local))
    const names = deps.ignoresCase ? namesOf(inFolder()) : new Map<string, string>()
    await noting(there, async ({ key, remote, local: seen }) => {
      signal.throwIfAborted()
      // A folder that something was in may have gone with it.
      const local = seen.state === undefined && seen.stat ? await tree.look(key) : seen
      if (!sameState(local.state, seen.state)) return changedMeanwhile
      const problem =
        writer.problem(key) ?? collision(key, names, local) ?? (await bring(key, remote!, local))
      if (!problem) addNames(names, key)
      return problem
    })
  }

  async function bring(key: string, remote: NonNullable<PathState>, local: LocalPath): Promise<Blocked> {
    const hash = hashOf(remote)
    if (hash === undefined) return writer.place(key, remote, new Uint8Array(), local)
    const content = (await client()).blobs.read(hash, signal)
    try {
      if (remote.mode === '120000')
        return await writer.place(key, remote, Buffer.concat(await Array.fromAsync(content)), local)
      return await writer.place(key, remote, await writer.prepare(content), local)
    } catch (thrown) {
      // What the base commit has is in no blob; it comes with a whole reading.
      if (thrown instanceof TuttiError && ['not_found', 'data_loss'].includes(thrown.code)) {
        needsReading ||= thrown.code === 'not_found' && !readFor.has(key)
        readFor.add(key)
        return `its content (${hash}) cannot be had now; \`tutti agent recover ${bcId} --verify\` says what the stores have lost`
      }
      throw thrown
    }
  }

  async function send(changes: readonly LocalChange[]): Promise<void> {
    const deleted = changes.filter(({ local }) => local === undefined).map(({ key }) => key)
    if (!deps.allowDeletions && deleted.length > 0)
      countDeletions(state, [...deleted, ...deletionsSent], deps.now())
    try {
      for await (const { offsetKey, files, skipped } of sendChanges(deps, changes)) {
        for (const { key, local, won } of files) {
          sent.set(key, offsetKey)
          if (local === undefined) deletionsSent.add(key)
          note(won === undefined ? { kind: 'sent', key } : { kind: 'kept', key, detail: won })
        }
        for (const [key, detail] of skipped) left.set(key, detail)
      }
    } catch (thrown) {
      // Such as an archived agent: the other direction goes on, and this one is tried again.
      if (!(thrown instanceof TuttiError) || thrown.code !== 'failed_precondition') throw thrown
      for (const { key } of changes) if (!sent.has(key)) left.set(key, thrown.message)
    }
  }

  async function localOf(key: string, scan: LocalScan | undefined): Promise<LocalPath | undefined> {
    if (!scan) return tree.look(key)
    const found = scan.paths.get(key)
    if (found) return found
    // Of a folder that cannot be read it is known that it is there, of what is in it nothing.
    if (scan.isUnknown(key)) return undefined
    const remote = remoteOf(key)
    const { base } = state.get(key)
    const isFolder = remote?.mode === '040000' && !scan.holds(key)
    if (!isFolder && !(remote && base === undefined)) return nothing
    // A folder that is not empty is told from nothing only by a look. To both sides it is empty where nothing in it is kept.
    const seen = await tree.look(key)
    const isThere = isFolder && seen.stat !== undefined && !seen.state && !seen.unknown
    return isThere ? { ...seen, state: { mode: '040000' } } : seen
  }

  /** Some paths of a whole reading: known now, and in the folder unless the user has something else there. */
  async function keep(read: readonly RemotePath[], names: Map<string, string>): Promise<void> {
    const same: [string, PathState][] = []
    const takes: (Take & Pick<RemotePath, 'content'>)[] = []
    for (const { key, state: remote, content, isLost } of read) {
      if (isLost) readFor.add(key)
      const local = await tree.look(key)
      const decision = decide({ remote, local: local.state, base: state.get(key).base })
      if (decision === 'none' || decision === 'agree') same.push([key, remote])
      if (decision === 'take' && !local.unknown && !isLost) takes.push({ key, remote, local, content })
    }
    await crashPoint('sync.log', async () =>
      state.change((write) => {
        for (const { key, state: remote } of read) write.remote(key, remote)
      }),
    )
    for (const { key } of read) known.add(key)
    await agreed(same, false)
    for (const [key] of same) addNames(names, key)
    await noting(takes, async ({ key, remote, local, content }) => {
      const problem =
        writer.problem(key) ??
        collision(key, names, local) ??
        (await writer.place(key, remote!, content, local))
      if (!problem) addNames(names, key)
      return problem
    })
  }

  return {
    async begin() {
      await recall()
      if (deps.allowDeletions && state.deletions()) state.change((write) => write.deletionsAllowed())
      if (state.offset() !== undefined && !needsReading) return
      needsReading = false
      const seen = new Set<string>()
      const reading = readRemote(await client(), bcId, writer, signal)
      const names = new Map<string, string>()
      let read: RemotePath[] = []
      try {
        for (let next = await reading.next(); ; next = await reading.next()) {
          if (!next.done) {
            seen.add(next.value.key)
            read.push(next.value)
          }
          if (next.done || read.length >= notedAtOnce) {
            await keep(read, names)
            for (const { content } of read) writer.discard(content)
            read = []
          }
          if (next.done) {
            const { offsetKey, pending, missing } = next.value
            const isUntold = untold(missing)
            await crashPoint('sync.log', async () =>
              state.change((write) => {
                for (const key of known) if (!seen.has(key) && !isUntold(key)) write.remote(key, undefined)
                write.clearPending()
                for (const { commandId, path } of pending)
                  write.pending(commandId, Buffer.from(path).toString('latin1'))
                write.offset(offsetKey)
              }),
            )
            forgetSent(offsetKey)
            return
          }
        }
      } finally {
        for (const { content } of read) writer.discard(content)
      }
    },

    async take(events) {
      const from = state.offset() ?? ''
      const fresh = events.filter(({ offsetKey }) => offsetKey > from)
      if (fresh.length === 0) return
      const touched = await crashPoint('sync.log', async () => takeEvents(state, fresh))
      for (const key of touched) {
        known.add(key)
        dirty.add(key)
      }
      forgetSent(fresh.at(-1)!.offsetKey)
    },

    async settle(what) {
      const ancestors = new Set<string>()
      if (what === 'all') for (const key of known) for (const folder of foldersOf(key)) ancestors.add(folder)
      const scan =
        what === 'told' ? undefined : await tree.scan((key) => known.has(key) || ancestors.has(key), signal)
      const keys = scan
        ? new Set([...known, ...scan.paths.keys(), ...left.keys()])
        : new Set([...dirty, ...left.keys()])
      dirty = new Set()
      const same: [string, PathState][] = []
      const takes: Take[] = []
      const sends: LocalChange[] = []
      for (const key of keys) {
        if (sent.has(key)) continue
        left.delete(key)
        const remote = remoteOf(key)
        const { base } = state.get(key)
        const local = await localOf(key, scan)
        if (!local) continue
        if (local.unknown) {
          left.set(key, unreadable)
          continue
        }
        switch (decide({ remote, local: local.state, base })) {
          case 'none':
            break
          case 'agree':
            same.push([key, remote])
            break
          case 'take':
            takes.push({ key, remote, local })
            break
          case 'win':
            sends.push({
              key,
              local: local.state,
              stat: local.stat,
              base: hashOf(base),
              won: wonOver(remote),
            })
            break
          default:
            sends.push({ key, local: local.state, stat: local.stat, base: hashOf(base) })
        }
      }
      await agreed(same, false)
      await receive(takes)
      await send(sends.filter(({ key, local }) => local === undefined || !unsendable(key)))
      if (sent.size > 0 || needsReading) return 'sent'
      return [...left.values()].includes(changedMeanwhile) ? 'changing' : 'settled'
    },

    report(isOver) {
      const all = new Map([...state.failures(), ...left])
      for (const key of told.keys()) if (!all.has(key)) told.delete(key)
      for (const [key, detail] of all) {
        if (told.get(key) === detail || (detail === changedMeanwhile && !isOver)) continue
        told.set(key, detail)
        note({ kind: 'left', key, detail })
      }
      return all.size
    },
  }

  /** Whether that nothing was read of a path does not say that the agent has deleted it: its content is kept no more, or never was. */
  function untold(missing: ReadonlySet<string>): (key: string) => boolean {
    const isBelow = belowAny(new Set([...missing].map((key) => key.replace(/\/$/, ''))))
    const rules = tree.rules()
    return (key) => missing.has(key) || isBelow(key) || rules.matches(key)
  }

  function unsendable(key: string): boolean {
    const problem = writer.problem(key)
    if (problem) left.set(key, problem)
    return problem !== undefined
  }
}

const unreadable =
  'it cannot be read, is no file, link or folder, or changes all the time; make it one that you may read, or add it to .gitignore'

const nothing: LocalPath = { state: undefined, stat: undefined }

const wonOver = (remote: PathState): string =>
  remote === undefined
    ? 'the agent had deleted it'
    : `the agent's version stays in its history${'hash' in remote ? ` as ${remote.hash}` : ''}`
