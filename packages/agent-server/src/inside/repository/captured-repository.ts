import { createReadStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { limits, TuttiError } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import type { GitCommit, GitStateReport } from '../../port.ts'
import { diskFull } from '../disk-full.ts'
import { readState, type ReadState, type Submodules } from './read-state.ts'
import { createRepositoryGit, type RepositoryGit } from './repository-git.ts'
import { repositoryMark } from './repository-mark.ts'
import { makeStateCommit } from './state-commit.ts'

/** What of the agent's own repository the host has. */
export interface CapturedRepository {
  /** Takes it as it is for what the host has. */
  adopt(from: AdoptedRepository): void
  /**
   * What the host lacks; undefined when nothing has changed. Never fails for what the agent has made of its repository.
   *
   * @param gone files of submodules that are not there, as path keys
   */
  changed(gone: readonly string[], signal: AbortSignal): Promise<ChangedRepository>
}

export interface AdoptedRepository {
  /** The commit of the source that all of it began from: nothing of its history is sent. */
  readonly base: string
  /** Of that commit, as path keys. */
  readonly gitlinks: readonly string[]
  /** Files of submodules that are not there, as path keys. */
  readonly gone: readonly string[]
  /** State commit that was restored, and how many packs it took. */
  readonly state?: string
  readonly packs: number
  /** Commits of HEAD and the branches that it has. */
  readonly tips: readonly string[]
}

export interface ChangedRepository {
  readonly report?: GitStateReport
  /** Of the pack that the report announces. */
  bytes(): AsyncIterable<Uint8Array>
  readonly problems: ReadonlyMap<string, FileSkipReason>
  /** The host has it. */
  taken(): void
  /** The host does not want it: asked again when something else has changed. */
  refused(): void
  dispose(): Promise<void>
}

/** After so many packs the next one has everything again: a recovery reads them all. */
const maxPacks = 32
/** A pack of a large history on a slow disk, in milliseconds. */
const packLimitMs = 15 * 60_000
/** How often a repository that changes meanwhile is read again. */
const attempts = 3

interface Known {
  readonly mark: string | undefined
  readonly state?: string
  readonly packs: number
  readonly tips: readonly string[]
  readonly problems: ReadonlyMap<string, FileSkipReason>
}

export function createCapturedRepository(workdir: string, home: string): CapturedRepository {
  const gitDir = join(workdir, '.git')
  let base = ''
  let gitlinks: readonly string[] = []
  let known: Known = { mark: undefined, packs: 0, tips: [], problems: new Map() }

  const unchanged = (): ChangedRepository => ({
    bytes: () => createReadStream('/dev/null'),
    problems: known.problems,
    taken() {},
    refused() {},
    async dispose() {},
  })

  async function read(gone: readonly string[], signal: AbortSignal): Promise<ChangedRepository> {
    const git = createRepositoryGit(workdir, home, signal)
    const { mark, found } = await readSettled(git, { gitlinks, gone }, signal)
    const problems = found.problems
    const commit = await makeStateCommit(git, found.state, found.named)
    if (commit === known.state) {
      known = { ...known, mark, problems }
      return unchanged()
    }
    const { state, packs } = known
    const onto = state !== undefined && packs < maxPacks ? state : undefined
    const pack = await makePack(git, commit, base, onto).catch((error: unknown) => {
      // All of it at once may be too much where each step was not.
      const isTooMuch = error instanceof TuttiError && error.code === 'resource_exhausted'
      if (isTooMuch && onto === undefined && state !== undefined) return makePack(git, commit, base, state)
      throw error
    })
    const report: GitStateReport = {
      commit,
      ...(pack.onto !== undefined && { onto: pack.onto }),
      ...(found.head !== undefined && { head: found.head }),
      ...('ref' in found.state.head && { branch: found.state.head.ref }),
      commits: await newCommits(git, found.tips, [base, ...known.tips]),
      size: pack.size,
    }
    const next: Known = {
      mark,
      state: commit,
      packs: pack.onto === undefined ? 1 : known.packs + 1,
      tips: found.tips,
      problems,
    }
    return {
      report,
      bytes: () => createReadStream(pack.path, { highWaterMark: 64 << 10 }),
      problems,
      taken() {
        known = next
      },
      refused() {
        known = { ...known, mark, problems }
      },
      dispose: () => rm(pack.path, { force: true }),
    }
  }

  return {
    adopt(from) {
      base = from.base
      gitlinks = from.gitlinks
      const state = from.state === undefined ? {} : { state: from.state }
      known = {
        mark: markOf(gitDir, from.gone),
        ...state,
        packs: from.packs,
        tips: from.tips,
        problems: new Map(),
      }
    },
    async changed(gone, signal) {
      const mark = markOf(gitDir, gone)
      if (mark === known.mark) return unchanged()
      if (mark === unreadable) {
        known = { ...known, mark, problems: new Map([['.git', 'unreadable']]) }
        return unchanged()
      }
      try {
        return await read(gone, signal)
      } catch (error) {
        signal.throwIfAborted()
        const isFull = diskFull(error, home) !== undefined
        const code = error instanceof TuttiError ? error.code : undefined
        const reason = isFull ? 'limit' : code === 'resource_exhausted' ? 'too_large' : 'unreadable'
        // Asked again when something changes, not at every capture; but the disk may have room by then.
        known = { ...known, mark: isFull ? undefined : mark, problems: new Map([['.git', reason]]) }
        return unchanged()
      }
    },
  }
}

/** Read while nothing changes; what still changes after some tries is read again at the next capture. */
async function readSettled(
  git: RepositoryGit,
  submodules: Submodules,
  signal: AbortSignal,
): Promise<{ mark: string | undefined; found: ReadState }> {
  for (let attempt = 1; ; attempt += 1) {
    const before = markOf(git.gitDir, submodules.gone)
    const found = await readState(git, submodules, signal)
    const mark = markOf(git.gitDir, submodules.gone)
    if (mark === before) return { mark, found }
    if (attempt === attempts) return { mark: undefined, found }
  }
}

/** Everything that `commit` needs beyond the base and the state before it, as a file. */
async function makePack(
  git: RepositoryGit,
  commit: string,
  base: string,
  onto: string | undefined,
): Promise<{ path: string; size: number; onto: string | undefined }> {
  const prefix = join(await git.scratch(), 'pack')
  const pack = async (without: readonly string[]) => {
    const options = ['--revs', '--quiet', '--threads=1', '--window-memory=32m']
    const input = Buffer.from([commit, ...without.map((id) => `^${id}`)].map((id) => `${id}\n`).join(''))
    const run = { input, timeoutMs: packLimitMs }
    const name = (await git.writing(['pack-objects', ...options, prefix], run)).toString().trim()
    await rm(`${prefix}-${name}.idx`, { force: true })
    await rm(`${prefix}-${name}.rev`, { force: true })
    const path = `${prefix}-${name}.pack`
    const { size } = await stat(path)
    if (size <= limits.maxGitStateBytes) return { path, size }
    await rm(path, { force: true })
    throw new TuttiError('resource_exhausted', `What the agent has committed takes ${size} bytes.`)
  }
  if (onto !== undefined) {
    // The agent may have removed what nothing of its own names.
    const made = await pack([base, onto]).catch((error: unknown) => {
      if (error instanceof TuttiError && error.code === 'failed_precondition') return undefined
      throw error
    })
    if (made) return { ...made, onto }
  }
  return { ...(await pack([base])), onto: undefined }
}

const maxCommits = 100
const maxMessage = 1000

/** What is new on HEAD and the branches, oldest first: the newest of them when there are very many. */
async function newCommits(
  git: RepositoryGit,
  tips: readonly string[],
  before: readonly string[],
): Promise<GitCommit[]> {
  if (tips.length === 0) return []
  const revisions = [...tips, ...before.map((id) => `^${id}`)].map((id) => `${id}\n`).join('')
  const listing = await git.reading(
    ['log', '-z', '--format=%H %B', `--max-count=${maxCommits}`, '--ignore-missing', '--stdin'],
    { input: Buffer.from(revisions) },
  )
  return listing
    .toString()
    .split('\0')
    .filter(Boolean)
    .map((line) => {
      const space = line.indexOf(' ')
      return {
        sha: line.slice(0, space),
        message: line
          .slice(space + 1)
          .trim()
          .slice(0, maxMessage),
      }
    })
    .reverse()
}

const unreadable = 'unreadable'

/** Of what git could not be asked about, always the same. */
function markOf(gitDir: string, gone: readonly string[]): string {
  try {
    const mark = repositoryMark(gitDir)
    return mark === undefined ? unreadable : `${mark}\n${gone.join('\0')}`
  } catch {
    return unreadable
  }
}
