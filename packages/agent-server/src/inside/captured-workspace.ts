import { chmodSync, lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathProblem, TuttiError } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import {
  isRacy,
  pathBytes,
  sameStat,
  scanTree,
  type CapturedChange,
  type ScannedFile,
  type ScannedTree,
} from '@tutti/workspace'
import { ancestors, emptyFolders } from './empty-folders.ts'
import type { GitStateReport } from '../port.ts'
import type { WrittenWorkspace } from './hydrate.ts'
import type { IgnoredPaths } from './ignored-paths.ts'
import type { CapturedRepository } from './repository/captured-repository.ts'
import { readContent, type ReadContent } from './read-content.ts'
import {
  knownFolder,
  summarize,
  type KnownFile,
  type KnownPath,
  type KnownPaths,
  type WorkspaceSummary,
} from './workspace-state.ts'

/** Takes what a capture finds, in path order. */
export interface CaptureOutput {
  change(change: CapturedChange, content: ReadContent | undefined): Promise<void>
  skipped(path: Uint8Array, reason: FileSkipReason, size: number | undefined): Promise<void>
  /** The agent's own repository, when it has changed. */
  gitState(report: GitStateReport, pack: AsyncIterable<Uint8Array>): Promise<void>
  /** Resolves when all of it is safe with the host, but for a state that it refuses. Only then does the workspace count as captured. */
  committed(summary: WorkspaceSummary): Promise<{ readonly takesState: boolean }>
}

export interface CapturedWorkspace {
  /** Takes the whole workspace as it is for the state that the next capture compares with; nothing is ignored then. */
  adopt(written: Written, signal: AbortSignal): Promise<WorkspaceSummary & { readonly wrong: string[] }>
  capture(output: CaptureOutput, signal: AbortSignal): Promise<WorkspaceSummary>
  /** Takes what has changed for no work of the agent's: the next capture compares with it, and its digest leaves it out. */
  absorb(signal: AbortSignal): Promise<void>
}

type Written = Pick<WrittenWorkspace, 'gitlinks' | 'expected'>

type LookedAt = ScannedTree & { readonly empty: ReadonlySet<string> }

export interface CapturedWorkspaceParts {
  readonly root: string
  readonly ignored: IgnoredPaths
  readonly repository: CapturedRepository
  readonly maxFileBytes: number
}

/** What of the workspace the host has, and how it differs from what is there. */
export function createCapturedWorkspace({
  root,
  ignored,
  repository,
  maxFileBytes,
}: CapturedWorkspaceParts): CapturedWorkspace {
  let known: KnownPaths = new Map()
  /** What these paths are to the host, which knows nothing of what was absorbed. */
  let absorbed = new Map<string, KnownPath | undefined>()
  let gitlinks: ReadonlySet<string> = new Set()
  let ignoredPaths = new Set<string>()
  let seenFolders = new Set<string>()
  let rules = ''
  let reported = new Set<string>()
  const isGitlink = (key: string) => gitlinks.has(key)
  const rulesNow = (tree: ScannedTree) => `${ignored.excludeMark()}\n${rulesOf(tree)}`
  const absolute = (key: string) => pathBytes(Buffer.from(root).toString('latin1') + '/' + key)

  const scan = async (prune: (key: string) => boolean, signal: AbortSignal): Promise<ScannedTree> => {
    openFolder(root)
    try {
      return await scanTree(root, { prune, signal })
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code
      if (code === undefined) throw cause
      const problem = `The agent has made its workspace unreadable (${code}).`
      throw new TuttiError('failed_precondition', problem, {}, cause)
    }
  }

  const emptyIn = ({ folders, unreadable }: ScannedTree, files: ScannedTree['files']) => {
    // What could not be looked at keeps its folder from being empty: what was known of it is still there.
    const empty = emptyFolders(folders, [...files.keys(), ...unreadable], gitlinks)
    for (const key of unreadable) empty.delete(key)
    return empty
  }

  /** Walks, and leaves out what is ignored. A changed rule file makes every earlier answer void. */
  async function look(signal: AbortSignal): Promise<LookedAt> {
    const all = ignoredPaths.size === 0 ? await scan(isGitlink, signal) : undefined
    if (all && rulesNow(all) === noRules) {
      rules = noRules
      return { ...all, empty: emptyIn(all, all.files) }
    }
    const tracked = new Set([...known.keys(), ...(await ignored.forced(signal))])
    const holders = ancestors(tracked)
    const prune = (key: string) =>
      isGitlink(key) || (ignoredPaths.has(key) && !holders.has(key) && !tracked.has(key))
    let tree = all ?? (await scan(prune, signal))
    if (rulesNow(tree) !== rules) {
      if (ignoredPaths.size > 0) {
        ignoredPaths = new Set()
        seenFolders = new Set()
        tree = await scan(prune, signal)
      }
      rules = rulesNow(tree)
      ignored.rulesChanged()
      seenFolders = new Set()
    }
    const mayAsk = outsideBlockedFolders(tree)
    const newFolders = tree.folders.filter((key) => !seenFolders.has(key) && mayAsk(key))
    for (const key of await ignored.of(newFolders, signal)) ignoredPaths.add(key)
    seenFolders = new Set(tree.folders)

    const inIgnored = belowAny(ignoredPaths)
    const files = new Map<string, ScannedFile>()
    const unknown: string[] = []
    for (const [key, file] of tree.files) {
      if (tracked.has(key)) files.set(key, file)
      else if (!ignoredPaths.has(key) && !inIgnored(key)) unknown.push(key)
    }
    const newlyIgnored = await ignored.of(unknown.filter(mayAsk), signal)
    for (const key of unknown) {
      if (newlyIgnored.has(key)) ignoredPaths.add(key)
      else files.set(key, tree.files.get(key)!)
    }
    const isKept = (key: string) => tracked.has(key) || !(ignoredPaths.has(key) || inIgnored(key))
    const empty = emptyIn({ ...tree, folders: tree.folders.filter(isKept) }, files)
    return { ...tree, files, empty, special: tree.special.filter((key) => !inIgnored(key)) }
  }

  return {
    async adopt(written, signal) {
      gitlinks = new Set(written.gitlinks)
      ignoredPaths = new Set()
      seenFolders = new Set()
      reported = new Set()
      const tree = await scan(isGitlink, signal)
      rules = rulesNow(tree)
      const next = new Map<string, KnownPath>()
      for (const [key, file] of tree.files) {
        signal.throwIfAborted()
        const content = await readContent(absolute(key), file)
        next.set(key, content.known)
        await content.dispose()
      }
      for (const key of emptyIn(tree, tree.files)) next.set(key, knownFolder)
      known = next
      absorbed = new Map()
      return { ...summarize(known, absorbed, 0), wrong: differing(known, written.expected) }
    },

    async capture(output, signal) {
      const found = await difference(signal)
      let changes = 0
      for await (const [change, content] of found.changes) {
        changes += 1
        await output.change(change, content)
      }
      const own = await repository.changed(signal)
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
        const notLogged = new Map(absorbed)
        for (const key of found.changed) notLogged.delete(key)
        const summary = summarize(found.next, notLogged, changes)
        const { takesState } = await output.committed(summary)
        known = found.next
        absorbed = notLogged
        reported = reportedNow
        if (takesState) own.taken()
        else own.refused()
        return summary
      } finally {
        await own.dispose()
      }
    },

    async absorb(signal) {
      const found = await difference(signal)
      for await (const _ of found.changes) void _
      for (const key of found.changed) if (!absorbed.has(key)) absorbed.set(key, known.get(key))
      known = found.next
      repository.absorb()
    },
  }

  /** What is there now beside what is known; `next` and `changed` are whole when `changes` has come to its end. */
  async function difference(signal: AbortSignal) {
    const tree = await look(signal)
    const next = new Map(known)
    const changed = new Set<string>()
    const skips = new Map<string, FileSkipReason>()
    for (const [key, reason] of ignored.problems()) skips.set(key, reason)
    for (const key of tree.special) skips.set(key, 'special')
    for (const key of tree.unsafe) skips.set(key, 'unsafe_name')
    for (const key of tree.unreadable) skips.set(key, 'unreadable')
    const isUnknown = belowAny(new Set(tree.unreadable))
    const unreadable = new Set(tree.unreadable)
    const keys = new Set([...tree.files.keys(), ...tree.empty])
    // A path that could not be looked at is not gone, and only a walk that came to its end gets here.
    for (const key of known.keys()) if (!unreadable.has(key) && !isUnknown(key)) keys.add(key)

    async function* changes(): AsyncGenerator<[CapturedChange, ReadContent | undefined]> {
      for (const key of [...keys].sort()) {
        signal.throwIfAborted()
        const before = known.get(key)
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
          yield [{ action: 'deleted', path, ...base }, undefined]
          continue
        }
        if (earlier && isUnchanged(earlier, file)) continue
        if (pathProblem(path) !== undefined) {
          skips.set(key, 'unsafe_name')
          continue
        }
        if (file.stat.size > BigInt(maxFileBytes)) {
          skips.set(key, 'too_large')
          continue
        }
        const content = await readContent(absolute(key), file).catch((error: NodeJS.ErrnoException) => {
          // Gone or swapped since the walk: the next capture sees what became of it.
          if (!['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL'].includes(error.code ?? ''))
            skips.set(key, 'unreadable')
        })
        if (!content) continue
        try {
          next.set(key, content.known)
          if (earlier && earlier.hash === content.known.hash && earlier.mode === content.known.mode) continue
          changed.add(key)
          const { fileType, mode, size, hash } = content.known
          const state = { path, fileType, mode, size, hash }
          yield [{ action: earlier ? 'modified' : 'created', state, ...base }, content]
        } finally {
          await content.dispose()
        }
      }
    }
    return {
      changes: changes(),
      next,
      changed,
      skips,
      sizeOf: (key: string) => tree.files.get(key)?.stat.size,
    }
  }
}

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

/** Whether a path lies below one of these. */
function belowAny(folders: ReadonlySet<string>): (key: string) => boolean {
  return (key) => {
    if (folders.size === 0) return false
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (folders.has(key.slice(0, slash))) return true
    }
    return false
  }
}

/**
 * Where git can be asked: it opens the `.gitignore` of every folder on the way to a path, and waits for ever when that is a fifo.
 */
function outsideBlockedFolders(tree: ScannedTree): (key: string) => boolean {
  const blocked = new Set(tree.special.filter(isRuleFile).map((key) => dirname(key)))
  if (blocked.has('.')) return () => false
  const isBelow = belowAny(blocked)
  return (key) => !isBelow(key)
}

/**
 * The agent may have shut its own workspace. Its owner, who we are too, can open it again, and the mode of a folder is nothing that is
 * captured. A folder below stays shut: what was captured of it before stays what it is.
 */
function openFolder(path: string): void {
  try {
    const stats = lstatSync(path)
    if (stats.isDirectory() && (stats.mode & 0o700) !== 0o700) chmodSync(path, (stats.mode & 0o777) | 0o700)
  } catch {
    // The walk says what is wrong.
  }
}

/** Nothing can be ignored: git need not be asked. */
const noRules = '\n'

const isRuleFile = (key: string): boolean => key === '.gitignore' || key.endsWith('/.gitignore')

function rulesOf(tree: ScannedTree): string {
  const rules: string[] = []
  for (const [key, { stat }] of tree.files) {
    if (isRuleFile(key)) {
      rules.push(`${key} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`)
    }
  }
  return rules.sort().join('\n')
}
