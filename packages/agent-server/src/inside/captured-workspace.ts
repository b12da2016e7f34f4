import { lstatSync } from 'node:fs'
import { belowAny, foldersOf, pathProblem, TuttiError } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import {
  changePath,
  isRacy,
  pathBytes,
  pathKey,
  sameStat,
  statTuple,
  type CapturedChange,
  type ScannedFile,
} from '@tutti/workspace'
import type { GitStateReport } from '../port.ts'
import { applyChange } from './apply-change.ts'
import type { HostChange } from './receive-changes.ts'
import type { WrittenWorkspace } from './hydrate.ts'
import type { IgnoredPaths } from './ignored-paths.ts'
import type { CapturedRepository } from './repository/captured-repository.ts'
import type { PathHints } from './path-hints.ts'
import type { ActivityLook, AgentActivity } from './agent-activity.ts'
import { expectFiles } from './vanished-files.ts'
import { knownFile, readContent, type ReadContent, type TakeContent } from './read-content.ts'
import {
  knownFolder,
  nowNs,
  stateOf,
  summarize,
  type KnownFile,
  type KnownPath,
  type KnownPaths,
  type WorkspaceSummary,
} from './workspace-state.ts'
import { openFolder } from './open-folder.ts'
import type { LookedAt, WorkspaceLook } from './workspace-look.ts'

/** Takes what a capture finds, in path order. */
export interface CaptureOutput {
  /** The content of a large file. The change that it belongs to comes next, or none when it could not be read to its end. */
  content: TakeContent
  /** `content` is there for a file or link, but for one whose content was the last that {@link content} has taken. */
  change(change: CapturedChange, content: Uint8Array | undefined): Promise<void>
  skipped(path: Uint8Array, reason: FileSkipReason, size: number | undefined): Promise<void>
  /** The agent's own repository, when it has changed. */
  gitState(report: GitStateReport, pack: AsyncIterable<Uint8Array>): Promise<void>
  /** A path of a sync that the file system refuses, with the code of its error. */
  unwritten(path: Uint8Array, code: string): Promise<void>
  /** Resolves when all of it is safe with the host, but for a state that it refuses. Only then does the workspace count as captured. */
  committed(summary: WorkspaceSummary): Promise<{ readonly takesState: boolean }>
}

export interface CapturedWorkspace {
  /** Takes the whole workspace as it is for the state that the next capture compares with; nothing is ignored then. */
  adopt(written: Written, signal: AbortSignal): Promise<Adopted>
  capture(output: CaptureOutput, signal: AbortSignal): Promise<WorkspaceSummary>
  /**
   * Makes paths what the host says and takes that for what it has; then captures what else is different. Nothing of it counts as captured
   * before the host has taken the capture. A path that cannot be written holds up no other: it stays as it is.
   */
  sync(
    changes: AsyncIterable<HostChange>,
    output: CaptureOutput,
    signal: AbortSignal,
  ): Promise<WorkspaceSummary>
  /** What hints have told of, as far as that can be known without a walk: new content, and new files in known folders. */
  captureHinted(output: CaptureOutput, signal: AbortSignal): Promise<WorkspaceSummary>
  /** What a capture would say now. */
  look(signal: AbortSignal): Promise<WorkspaceSummary>
  /** Takes what has changed for no work of the agent's: the next capture compares with it, and its digest leaves it out. */
  absorb(signal: AbortSignal): Promise<void>
}

export interface Adopted {
  readonly summary: WorkspaceSummary
  /** Paths, as base64, that are not as they were written. */
  readonly wrong: string[]
  /** Files of submodules that are not there. */
  readonly gone: readonly string[]
}

type Written = Pick<WrittenWorkspace, 'gitlinks' | 'expected' | 'earlyHashes' | 'restored'>

export interface CapturedWorkspaceParts {
  readonly root: string
  readonly look: WorkspaceLook
  readonly ignored: IgnoredPaths
  readonly repository: CapturedRepository
  readonly hints: PathHints
  readonly activity: AgentActivity
  readonly maxFileBytes: number
}

interface Difference {
  /** @param take gets the contents of large files, each before its change; without it they are only hashed */
  changes(take?: TakeContent): AsyncIterable<[CapturedChange, Uint8Array | undefined]>
  readonly next: KnownPaths
  readonly changed: ReadonlySet<string>
  readonly skips: Map<string, FileSkipReason>
  /** What {@link LookedAt} says of it. */
  readonly gone: readonly string[]
  sizeOf(key: string): bigint | undefined
}

/** What of the workspace the host has, and how it differs from what is there. */
export function createCapturedWorkspace({
  root,
  look,
  ignored,
  repository,
  hints,
  activity,
  maxFileBytes,
}: CapturedWorkspaceParts): CapturedWorkspace {
  let known: KnownPaths = new Map()
  /** What these paths are to the host, which knows nothing of what was absorbed. */
  let absorbed = new Map<string, KnownPath | undefined>()
  let reported = new Set<string>()
  let last = summarize(known, absorbed, 0)
  const absolute = (key: string) => pathBytes(Buffer.from(root).toString('latin1') + '/' + key)

  return {
    async adopt(written, signal) {
      reported = new Set()
      const isIgnored = (key: string) => written.expected.get(key)?.ignored === true
      const tree = await look.begin(written.expected, written.gitlinks, written.restored, signal)
      hints.follow(tree.folders)
      const { earlyHashes } = written
      await earlyHashes.finish(signal)
      const next = new Map<string, KnownPath>()
      for (const [key, file] of tree.files) {
        const hash = file.type === 'file' ? earlyHashes.of(key, file.stat) : undefined
        if (hash) {
          const known = knownFile('file', file.stat, Number(file.stat.size), hash, earlyHashes.startedAtNs)
          next.set(key, { ...known, ignored: isIgnored(key) })
          continue
        }
        signal.throwIfAborted()
        next.set(key, (await readContent(absolute(key), file, isIgnored(key))).known)
      }
      for (const key of tree.empty) next.set(key, knownFolder)
      known = next
      absorbed = new Map()
      last = summarize(known, absorbed, 0)
      return { summary: last, wrong: differing(known, written.expected), gone: tree.gone }
    },

    capture: (output, signal) => captureFrom(known, nothingGiven, output, signal),

    async sync(changes, output, signal) {
      // What is written takes the place of other files: until a capture of that is taken, they may be gone.
      activity.began()()
      const from = new Map(known)
      const given = new Set<string>()
      const refused: [Uint8Array, string][] = []
      for await (const { change, content } of changes) {
        const key = pathKey(changePath(change))
        // The user's version comes also where the agent has made its folder read-only.
        for (const folder of foldersOf(key)) openFolder(absolute(folder))
        try {
          await applyChange(root, change, content)
        } catch (error) {
          const code = refusal(error)
          if (code === undefined) throw error
          refused.push([changePath(change), code])
          continue
        }
        given.add(key)
        const written = writtenPath(change, absolute(key))
        if (written) from.set(key, written)
        else from.delete(key)
      }
      for (const [path, code] of refused) await output.unwritten(path, code)
      return captureFrom(from, given, output, signal)
    },

    async captureHinted(output, signal) {
      const tree = await look.lookAt(hints.take(), known, signal)
      const found = difference(tree, known, [...tree.files.keys()], signal)
      return (await commit(found, nothingGiven, output, await putOut(found, output))).summary
    },

    async look(signal) {
      const found = await walkedDifference(known, signal)
      for await (const _ of found.changes()) void _
      const notLogged = new Map(absorbed)
      for (const key of found.changed) notLogged.delete(key)
      return summarize(found.next, notLogged, found.changed.size)
    },

    async absorb(signal) {
      const found = await walkedDifference(known, signal)
      for await (const _ of found.changes()) void _
      for (const key of found.changed) if (!absorbed.has(key)) absorbed.set(key, known.get(key))
      known = found.next
      found.taken()
    },
  }

  /** @param given paths of `from` that come from the host: none of them is work that was absorbed. */
  async function captureFrom(
    from: KnownPaths,
    given: ReadonlySet<string>,
    output: CaptureOutput,
    signal: AbortSignal,
  ): Promise<WorkspaceSummary> {
    const found = await walkedDifference(from, signal)
    const changes = await putOut(found, output)
    const own = await repository.changed(found.gone, signal)
    try {
      if (own.report) await output.gitState(own.report, own.bytes())
      for (const [path, reason] of own.problems) found.skips.set(path, reason)
      const reportedNow = new Set<string>()
      for (const [key, reason] of [...found.skips].sort(([left], [right]) => (left < right ? -1 : 1))) {
        const mark = `${reason} ${key}`
        reportedNow.add(mark)
        const size = found.sizeOf(key)
        if (!reported.has(mark))
          await output.skipped(pathBytes(key), reason, size === undefined ? undefined : Number(size))
      }
      const { summary, takesState } = await commit(found, given, output, changes)
      found.taken()
      reported = reportedNow
      if (takesState) own.taken()
      else own.refused()
      return summary
    } finally {
      await own.dispose()
    }
  }

  async function putOut(found: Difference, output: CaptureOutput): Promise<number> {
    let changes = 0
    for await (const [change, content] of found.changes(output.content)) {
      changes += 1
      await output.change(change, content)
    }
    return changes
  }

  async function commit(
    found: Difference,
    given: ReadonlySet<string>,
    output: CaptureOutput,
    changes: number,
  ) {
    const notLogged = new Map(absorbed)
    for (const key of [...found.changed, ...given]) notLogged.delete(key)
    // What is absorbed changes nothing for the host, so without changes the workspace is the one of before.
    const isOther = found.changed.size > 0 || given.size > 0
    const summary = isOther ? summarize(found.next, notLogged, changes) : { ...last, changes }
    const { takesState } = await output.committed(summary)
    known = found.next
    absorbed = notLogged
    last = summary
    return { summary, takesState }
  }

  async function walkedDifference(
    from: KnownPaths,
    signal: AbortSignal,
  ): Promise<Difference & Pick<ActivityLook, 'taken'>> {
    hints.forget()
    const { acted, taken } = activity.look()
    const seen = await look.look(from, signal)
    const tree = acted
      ? seen
      : await expectFiles(fileKeys(from, seen), seen, () => look.look(from, signal), signal)
    hints.follow(tree.folders)
    const isUnknown = belowAny(new Set(tree.unreadable))
    const unreadable = new Set(tree.unreadable)
    const keys = new Set([...tree.files.keys(), ...tree.empty])
    // A path that could not be looked at is not gone, and only a walk that came to its end gets here.
    for (const key of from.keys()) if (!unreadable.has(key) && !isUnknown(key)) keys.add(key)
    return { ...difference(tree, from, keys, signal), taken }
  }

  /** A file that may only have been touched is hashed first, so that nothing of a large one goes over again. */
  async function readChanged(
    key: string,
    file: ScannedFile,
    isIgnored: boolean,
    earlier: KnownFile | undefined,
    take: TakeContent | undefined,
  ): Promise<ReadContent> {
    const read = (to?: TakeContent) => readContent(absolute(key), file, isIgnored, to, maxFileBytes)
    if (!earlier || BigInt(earlier.size) !== file.stat.size) return read(take)
    const content = await read()
    return content.bytes || isSame(earlier, content.known) ? content : read(take)
  }

  /** What is there now at these paths beside `from`; `next` and `changed` are whole when `changes` has come to its end. */
  function difference(
    tree: LookedAt,
    from: KnownPaths,
    keys: Iterable<string>,
    signal: AbortSignal,
  ): Difference {
    const next = new Map(from)
    const changed = new Set<string>()
    const skips = new Map<string, FileSkipReason>()
    for (const [key, reason] of ignored.problems()) skips.set(key, reason)
    for (const key of tree.special) skips.set(key, 'special')
    for (const key of tree.unsafe) skips.set(key, 'unsafe_name')
    for (const key of tree.repositories) skips.set(key, 'repository')
    for (const key of tree.unreadable) skips.set(key, 'unreadable')
    for (const key of tree.leftOut) skips.set(key, 'ignored')
    const isBelowLeftOut = belowAny(
      new Set(tree.leftOut.filter((key) => key.endsWith('/')).map((key) => key.slice(0, -1))),
    )

    async function* changes(take?: TakeContent): AsyncGenerator<[CapturedChange, Uint8Array | undefined]> {
      for (const key of [...keys].sort()) {
        signal.throwIfAborted()
        const before = from.get(key)
        const file = tree.files.get(key)
        const earlier = before?.fileType === 'dir' ? undefined : before
        const base = earlier ? { base: earlier.hash } : {}
        const path = pathBytes(key)
        if (tree.empty.has(key)) {
          if (before?.fileType === 'dir') continue
          if (pathProblem(path) !== undefined) {
            skips.set(key, 'unsafe_name')
            continue
          }
          next.set(key, knownFolder)
          changed.add(key)
          yield [
            { action: before ? 'modified' : 'created', state: { path, ...knownFolder }, ...base },
            undefined,
          ]
          continue
        }
        if (!file) {
          next.delete(key)
          changed.add(key)
          const isLeftOut = skips.get(key) === 'ignored' || isBelowLeftOut(key)
          yield [{ action: 'deleted', path, ...base, ...(isLeftOut && { ignored: true }) }, undefined]
          continue
        }
        const isIgnored = tree.ignored.has(key)
        if (earlier && earlier.ignored === isIgnored && isUnchanged(earlier, file)) continue
        if (pathProblem(path) !== undefined) {
          skips.set(key, 'unsafe_name')
          continue
        }
        if (file.stat.size > BigInt(maxFileBytes)) {
          skips.set(key, 'too_large')
          continue
        }
        const content = await readChanged(key, file, isIgnored, earlier, take).catch(
          (error: NodeJS.ErrnoException) => {
            // The host does not take it any more.
            if (error instanceof TuttiError) throw error
            // Gone or swapped since the walk: the next capture sees what became of it.
            if (!['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL'].includes(error.code ?? ''))
              skips.set(key, error.code === 'EFBIG' ? 'too_large' : 'unreadable')
          },
        )
        if (!content) continue
        next.set(key, content.known)
        if (earlier && isSame(earlier, content.known)) continue
        changed.add(key)
        const state = stateOf(path, content.known)
        yield [{ action: earlier ? 'modified' : 'created', state, ...base }, content.bytes]
      }
    }
    return {
      changes,
      next,
      changed,
      skips,
      gone: tree.gone,
      sizeOf: (key: string) => tree.files.get(key)?.stat.size,
    }
  }
}

/** The files that are known, but for those that a look could not see. */
function fileKeys(known: KnownPaths, { unreadable }: LookedAt): string[] {
  const unseen = new Set(unreadable)
  const isUnseen = belowAny(unseen)
  return [...known].flatMap(([key, entry]) =>
    entry.fileType === 'dir' || unseen.has(key) || isUnseen(key) ? [] : [key],
  )
}

const nothingGiven: ReadonlySet<string> = new Set()

/** What a path is after a change was applied; undefined when it is gone. */
function writtenPath(change: CapturedChange, path: Buffer): KnownPath | undefined {
  if (change.action === 'deleted') return undefined
  const { state } = change
  if (state.fileType === 'dir') return knownFolder
  const { fileType, mode, size, hash } = state
  const stat = statTuple(lstatSync(path, { bigint: true }))
  return { fileType, mode, size, hash, ignored: state.ignored === true, stat, readAtNs: nowNs() }
}

/** The code with which the file system refuses a path; undefined for any other failure. */
const refusal = (error: unknown): string | undefined =>
  error instanceof Error && 'syscall' in error ? (error as NodeJS.ErrnoException).code : undefined

const maxWrong = 1000

/** Paths, as base64, that are not what they must be. */
function differing(known: KnownPaths, expected: Written['expected']): string[] {
  const wrong: string[] = []
  for (const [key, { mode, hash }] of expected) {
    const entry = known.get(key)
    const isRight =
      entry?.mode === mode && (hash === undefined || (entry.fileType !== 'dir' && entry.hash === hash))
    if (!isRight) wrong.push(key)
  }
  for (const key of known.keys()) if (!expected.has(key)) wrong.push(key)
  return wrong.slice(0, maxWrong).map((key) => pathBytes(key).toString('base64'))
}

const isUnchanged = (before: KnownFile, file: ScannedFile): boolean =>
  before.fileType === file.type && sameStat(before.stat, file.stat) && !isRacy(before.stat, before.readAtNs)

const isSame = (before: KnownFile, now: KnownFile): boolean =>
  before.hash === now.hash && before.mode === now.mode && before.ignored === now.ignored
