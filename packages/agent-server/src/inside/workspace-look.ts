import { dirname } from 'node:path'
import { belowAny, foldersOf, TuttiError } from '@tutti/core'
import {
  holdsNothing,
  isFolder,
  scanFile,
  scanTree,
  type ScannedFile,
  type ScannedTree,
} from '@tutti/workspace'
import { ancestors, emptyFolders } from './empty-folders.ts'
import { openFolder } from './open-folder.ts'
import { submoduleFiles, type Gitlinks } from './submodule-files.ts'
import type { IgnoredPaths } from './ignored-paths.ts'
import { divideIgnored, leavesFolder, maxInFolder, type IgnoredPolicy } from './ignored-policy.ts'

/** What the host has, by path key. */
type Before = ReadonlyMap<string, { readonly mode: string; readonly ignored?: boolean }>

/** A walk, without what git ignores and the policy does not keep. */
export interface LookedAt extends ScannedTree {
  readonly empty: ReadonlySet<string>
  /** Those of the files that git ignores. */
  readonly ignored: ReadonlySet<string>
  /** Ignored files that are not kept, and folders with a slash behind them. */
  readonly leftOut: readonly string[]
  /** What submodules have and is not there, and the folders in which they belong. */
  readonly gone: readonly string[]
}

export interface WorkspaceLook {
  /**
   * Begins anew with these paths, which the host has.
   *
   * @param repository resolves when what git ignores can be read from it
   */
  begin(
    known: Before,
    gitlinks: Gitlinks,
    repository: Promise<unknown>,
    signal: AbortSignal,
  ): Promise<LookedAt>
  look(known: Before, signal: AbortSignal): Promise<LookedAt>
  /** Only at these paths, and only those files of them for which the last look has everything else that there is to know. */
  lookAt(keys: ReadonlySet<string>, known: Before, signal: AbortSignal): Promise<LookedAt>
}

export interface WorkspaceLookParts {
  readonly root: string
  readonly ignored: IgnoredPaths
  readonly policy: IgnoredPolicy
}

/** How many ignored files of one folder are told of one by one. */
const maxToldOfFolder = 100

/** Walks a workspace, and finds out what of it git ignores. */
export function createWorkspaceLook({ root, ignored, policy }: WorkspaceLookParts): WorkspaceLook {
  let gitlinks: Gitlinks = new Map()
  /** Of submodules, when it was looked last. */
  let gone: readonly string[] = []
  let ignoredPaths = new Set<string>()
  /** Asked about, and not ignored. */
  let settled = new Set<string>()
  let seenFolders = new Set<string>()
  let crowded = new Set<string>()
  let rules = ''
  let lastFolders: ReadonlySet<string> = new Set()
  const isGitlink = (key: string) => gitlinks.has(key)
  const rulesNow = (tree: ScannedTree) => `${ignored.excludeMark()}\n${rulesOf(tree)}`

  const scan = async (prune: (key: string) => boolean, signal: AbortSignal): Promise<ScannedTree> => {
    // A folder below stays shut: what was captured of it before stays what it is.
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

  /** What had taken a submodule's place is gone again, and its folder is there: no commit of ours says so any more. */
  const emptied = (known: Before): Set<string> =>
    new Set([...gitlinks.keys()].filter((key) => known.has(key) && holdsNothing(root, key)))

  const emptyIn = (
    { folders, unreadable }: Pick<ScannedTree, 'folders' | 'unreadable'>,
    files: Iterable<string>,
    known: Before,
  ) => {
    if (unreadable.length === 0) return emptyFolders(folders, files, gitlinks.keys()).union(emptied(known))
    // What could not be looked at keeps its folder from being empty where something is known of it: that is still there.
    const unseen = new Set(unreadable)
    const isBelow = belowAny(unseen)
    const still = [...known.keys()].filter((key) => unseen.has(key) || isBelow(key))
    const holders = ancestors(still)
    const seen = folders.filter((key) => !unseen.has(key) || holders.has(key))
    return emptyFolders(seen, [...files, ...still, ...holders], gitlinks.keys())
      .union(emptied(known))
      .difference(unseen)
  }
  /** What is changed in submodules is in no commit of ours either: there they are what the base says. */
  async function withSubmodules(seen: LookedAt, known: Before, signal: AbortSignal): Promise<LookedAt> {
    if (gitlinks.size === 0) return seen
    const own = await submoduleFiles(root, gitlinks, known, gone, policy, signal)
    gone = own.gone
    return {
      files: new Map([...seen.files, ...own.files]),
      ignored: new Set([...seen.ignored, ...own.files.keys()]),
      folders: seen.folders,
      pruned: seen.pruned,
      empty: new Set([...seen.empty, ...own.empty]),
      special: [...seen.special, ...own.special],
      unsafe: [...seen.unsafe, ...own.unsafe],
      repositories: [...seen.repositories, ...own.repositories],
      unreadable: [...seen.unreadable, ...own.unreadable],
      leftOut: [...seen.leftOut, ...own.leftOut],
      gone: own.gone,
    }
  }
  const nothingIgnored = (tree: ScannedTree, known: Before, signal: AbortSignal): Promise<LookedAt> => {
    const empty = emptyIn(tree, tree.files.keys(), known)
    return withSubmodules({ ...tree, empty, ignored: new Set(), leftOut: [], gone: [] }, known, signal)
  }

  /** What git tracks of what its rules match. A repository that cannot be asked tracks everything that was known as not ignored. */
  async function trackedOf(known: Before, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const forced = await ignored.forced(signal)
    if (forced) return forced
    return new Set([...known].flatMap(([key, entry]) => (isKnownIgnored(entry) ? [] : [key])))
  }

  async function walk(tracked: ReadonlySet<string>, signal: AbortSignal): Promise<ScannedTree> {
    const holders = ancestors(tracked)
    const prune = (key: string) =>
      isGitlink(key) ||
      (ignoredPaths.has(key) && !holders.has(key) && (crowded.has(key) || leavesFolder(key, policy)))
    return scan(prune, signal)
  }

  /** Asks git about what is new. A changed rule file makes every earlier answer void. */
  async function ask(
    first: ScannedTree,
    tracked: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ScannedTree> {
    let tree = first
    if (rulesNow(tree) !== rules) {
      const hadIgnored = ignoredPaths.size > 0
      ignoredPaths = new Set()
      settled = new Set()
      seenFolders = new Set()
      crowded = new Set()
      if (hadIgnored) tree = await walk(tracked, signal)
      rules = rulesNow(tree)
      ignored.rulesChanged()
    }
    const mayAsk = outsideBlockedFolders(tree)
    const newFolders = tree.folders.filter((key) => !seenFolders.has(key) && mayAsk(key))
    for (const key of await ignored.of(newFolders, signal)) ignoredPaths.add(key)
    seenFolders = new Set(tree.folders)
    const inIgnored = belowAny(ignoredPaths)
    const unknown: string[] = []
    for (const key of tree.files.keys()) {
      const isSettled = settled.has(key) || tracked.has(key) || ignoredPaths.has(key) || inIgnored(key)
      if (!isSettled && mayAsk(key)) unknown.push(key)
    }
    const newlyIgnored = await ignored.of(unknown, signal)
    for (const key of unknown) (newlyIgnored.has(key) ? ignoredPaths : settled).add(key)
    return tree
  }

  async function look(known: Before, signal: AbortSignal): Promise<LookedAt> {
    const all = ignoredPaths.size === 0 ? await scan(isGitlink, signal) : undefined
    if (all && rulesNow(all) === noRules) {
      rules = noRules
      return nothingIgnored(all, known, signal)
    }
    let tracked = await trackedOf(known, signal)
    let holders = ancestors(tracked)
    const tree = await ask(all ?? (await walk(tracked, signal)), tracked, signal)
    const inIgnored = belowAny(ignoredPaths)
    const isIgnored = (key: string) => !tracked.has(key) && (ignoredPaths.has(key) || inIgnored(key))
    const isTurning = (key: string) => wasKept(known.get(key)) && isIgnored(key)
    if (tree.files.keys().some(isTurning)) {
      // By the rules of now, which may be others than those by which git was asked what it tracks.
      ignored.rulesChanged()
      tracked = await trackedOf(known, signal)
      holders = ancestors(tracked)
    }

    const files = new Map<string, ScannedFile>()
    const candidates = new Map<string, bigint>()
    const byFolder = new Map<string, string[]>()
    const leftOut = new Set<string>()
    for (const [key, file] of tree.files) {
      if (!isIgnored(key)) files.set(key, file)
      else {
        const root = rootOf(key)
        const left = root === '' ? undefined : leftFolder(key, root)
        if (left !== undefined) leftOut.add(`${left}/`)
        else (byFolder.get(root) ?? newList(byFolder, root)).push(key)
      }
    }
    for (const key of tree.pruned) if (!isGitlink(key)) leftOut.add(`${key}/`)
    for (const [folder, keys] of byFolder) {
      const isCrowded = folder !== '' && keys.length > maxInFolder && policy.files === 'small'
      if (isCrowded) crowded.add(folder)
      if (isCrowded) leftOut.add(`${folder}/`)
      else for (const key of keys) candidates.set(key, tree.files.get(key)!.stat.size)
    }
    const kept = divideIgnored(candidates, (key) => isKnownIgnored(known.get(key)), policy)
    for (const key of kept) files.set(key, tree.files.get(key)!)
    for (const [folder, keys] of byFolder) {
      if (leftOut.has(`${folder}/`)) continue
      const left = keys.filter((key) => !kept.has(key))
      if (folder !== '' && left.length > maxToldOfFolder) leftOut.add(`${folder}/`)
      else for (const key of left) leftOut.add(key)
    }
    for (const key of tree.folders) {
      const left = isIgnored(key) && !holders.has(key) ? leftFolder(`${key}/`, rootOf(`${key}/`)) : undefined
      if (left !== undefined) leftOut.add(`${left}/`)
    }
    // That a folder is left out tells of all that is in it.
    const isInLeftOut = belowAny(new Set([...leftOut].map((key) => key.replace(/\/$/, ''))))
    const folders = tree.folders.filter((key) => !isInLeftOut(`${key}/`))
    const special = tree.special.filter((key) => !isInLeftOut(key))
    const repositories = tree.repositories.filter((key) => !isInLeftOut(key))
    const empty = emptyIn({ ...tree, folders }, [...files.keys(), ...ancestors(kept)], known)
    const seen = {
      ...tree,
      files,
      special,
      repositories,
      empty,
      ignored: kept,
      leftOut: [...leftOut],
      gone: [],
    }
    return withSubmodules(seen, known, signal)
  }

  /** The outermost ignored folder that a path is in; empty when it is ignored by itself. */
  function rootOf(key: string): string {
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (ignoredPaths.has(key.slice(0, slash))) return key.slice(0, slash)
    }
    return ''
  }

  /** A file of which nothing but its content or its existence is new. */
  function plainFile(key: string, known: Before): ScannedFile | undefined {
    if (isRuleFile(key) || isGitlink(key) || lastFolders.has(key)) return
    // No walk goes into a submodule, so its folders are none of these.
    const isPlain = (folder: string) =>
      lastFolders.has(folder) && !known.has(folder) && isFolder(root, folder)
    if (!foldersOf(key).every(isPlain)) return
    const file = scanFile(root, key)
    return file && file.stat.size <= maxLookedAt ? file : undefined
  }

  async function lookAt(keys: ReadonlySet<string>, known: Before, signal: AbortSignal): Promise<LookedAt> {
    const files = new Map<string, ScannedFile>()
    for (const key of keys) {
      const file = plainFile(key, known)
      if (file) files.set(key, file)
    }
    const inIgnored = belowAny(ignoredPaths)
    const isSettled = (key: string) => known.has(key) || settled.has(key) || rules === noRules
    const unknown = [...files.keys()].filter(
      (key) => !isSettled(key) && !ignoredPaths.has(key) && !inIgnored(key),
    )
    const newlyIgnored = await ignored.of(unknown, signal)
    for (const key of unknown) (newlyIgnored.has(key) ? ignoredPaths : settled).add(key)
    for (const key of files.keys())
      if (!known.has(key) && (ignoredPaths.has(key) || inIgnored(key))) files.delete(key)
    const kept = new Set([...files.keys()].filter((key) => isKnownIgnored(known.get(key))))
    return { ...nothingFound, files, ignored: kept, empty: new Set(), leftOut: [], gone: [] }
  }

  const remembered = (seen: LookedAt): LookedAt => {
    lastFolders = new Set(seen.folders)
    return seen
  }

  /** A folder on the way to a path, in the ignored `root` or that itself, that is not even looked into when it is met again. */
  function leftFolder(key: string, root: string): string | undefined {
    for (let slash = root.length; slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (leavesFolder(key.slice(0, slash), policy)) return key.slice(0, slash)
    }
    return undefined
  }

  return {
    async begin(known, links, repository, signal) {
      await ignored.prepare()
      gitlinks = links
      gone = []
      seenFolders = new Set()
      crowded = new Set()
      ignoredPaths = new Set()
      settled = new Set()
      for (const [key, entry] of known) (isKnownIgnored(entry) ? ignoredPaths : settled).add(key)
      const tree = await scan(isGitlink, signal)
      await repository
      rules = rulesNow(tree)
      return remembered(await nothingIgnored(tree, known, signal))
    },
    look: async (known, signal) => remembered(await look(known, signal)),
    lookAt,
  }
}

/** Of a file that is looked at by itself, in bytes: a large one is read no more often than a walk does it. */
const maxLookedAt = 1n << 20n

const nothingFound: ScannedTree = {
  files: new Map(),
  folders: [],
  pruned: [],
  special: [],
  unsafe: [],
  repositories: [],
  unreadable: [],
}

function newList(lists: Map<string, string[]>, key: string): string[] {
  const list: string[] = []
  lists.set(key, list)
  return list
}

const wasKept = (entry: ReturnType<Before['get']>): boolean =>
  entry !== undefined && entry.mode !== '040000' && entry.ignored !== true

const isKnownIgnored = (entry: ReturnType<Before['get']>): boolean => entry?.ignored === true

/**
 * Where git can be asked: it opens the `.gitignore` of every folder on the way to a path, and waits for ever when that is a fifo.
 */
function outsideBlockedFolders(tree: ScannedTree): (key: string) => boolean {
  const blocked = new Set(tree.special.filter(isRuleFile).map((key) => dirname(key)))
  if (blocked.has('.')) return () => false
  const isBelow = belowAny(blocked)
  return (key) => !isBelow(key)
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
