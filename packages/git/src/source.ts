import { TuttiError } from '@tutti/core'
import { localUploadPack } from './hardened.ts'
import { pinHost, type Location } from './location.ts'
import { fsckComplaint, isRefusedAccess } from './push.ts'
import type { GitRunner } from './run-git.ts'

/** What a source says of itself. */
export interface SourceHead {
  /** Undefined while the source is empty. */
  readonly commit?: string
  /** The branch that HEAD names; undefined when HEAD names a commit, or a branch that has none yet. */
  readonly branch?: string
  readonly branches: ReadonlyMap<string, string>
}

const listTimeoutMs = 60_000
const fetchTimeoutMs = 30 * 60_000

/** Where the source's own store keeps the refs of the source; pruning touches nothing else. */
export const sourceRefs = 'refs/tutti/source'

export async function readSourceHead(
  git: GitRunner,
  location: Location,
  signal: AbortSignal,
): Promise<SourceHead> {
  const lines = await listRefs(git, location, '--symref', ['HEAD', 'refs/heads/*'], signal)
  const branches = new Map<string, string>()
  let commit: string | undefined
  let branch: string | undefined
  for (const line of lines) {
    const [value = '', name = ''] = line.split('\t')
    if (name === 'HEAD' && value.startsWith('ref: refs/heads/'))
      branch = value.slice('ref: refs/heads/'.length)
    else if (name === 'HEAD') commit = value
    else if (name.startsWith('refs/heads/')) branches.set(name.slice('refs/heads/'.length), value)
  }
  return {
    branches,
    ...(commit === undefined ? {} : { commit }),
    ...(branch === undefined ? {} : { branch }),
  }
}

/** Whether the source has this branch or tag, by its short name or in full. */
export async function hasRef(
  git: GitRunner,
  location: Location,
  ref: string,
  signal: AbortSignal,
): Promise<boolean> {
  const names = /^refs\/(?:heads|tags)\//.test(ref) ? [ref] : []
  const wanted = [`refs/heads/${ref}`, `refs/tags/${ref}`, ...names]
  const lines = await listRefs(git, location, '--refs', wanted, signal)
  // A pattern of ls-remote matches the end of a name.
  return lines.some((line) => wanted.includes(line.split('\t')[1] ?? ''))
}

async function listRefs(
  git: GitRunner,
  location: Location,
  option: '--symref' | '--refs',
  patterns: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const output = await git.run(
    ['ls-remote', option, ...uploadPack(location), '--', location.address, ...patterns],
    {
      signal,
      protocol: location.protocol,
      config: await pinHost(location, signal),
      timeoutMs: listTimeoutMs,
    },
  )
  if (output.exitCode !== 0) throw unreadable(location, output.stderr)
  return output.stdout.toString('utf8').split('\n')
}

/** Brings branches, tags and HEAD; removes those that the source has no more. */
export async function fetchSource(
  git: GitRunner,
  gitDir: string,
  location: Location,
  hasHead: boolean,
  signal: AbortSignal,
): Promise<void> {
  const args = [
    'fetch',
    '--quiet',
    '--prune',
    '--no-tags',
    // A clone made with --depth is a source like any other.
    '--update-shallow',
    '--no-write-fetch-head',
    '--recurse-submodules=no',
    '--no-auto-maintenance',
  ]
  const refs = [
    `+refs/heads/*:${sourceRefs}/heads/*`,
    `+refs/tags/*:${sourceRefs}/tags/*`,
    ...(hasHead ? [`+HEAD:${sourceRefs}/HEAD`] : []),
  ]
  const output = await git.run([...args, ...uploadPack(location), '--', location.address, ...refs], {
    gitDir,
    signal,
    protocol: location.protocol,
    config: await pinHost(location, signal),
    timeoutMs: fetchTimeoutMs,
  })
  if (output.exitCode !== 0) throw unreadable(location, output.stderr)
}

/** The branch that pull requests go to. @throws TuttiError `failed_precondition` when the source does not say. */
export function defaultBranchOf({ branch, branches }: SourceHead): string {
  if (branch !== undefined) return branch
  if (branches.size === 0) return 'main'
  for (const name of ['main', 'master']) if (branches.has(name)) return name
  const [only] = branches.keys()
  if (branches.size === 1 && only !== undefined) return only
  throw new TuttiError(
    'failed_precondition',
    'The repository has no default branch (its HEAD names a commit); check out a branch there, or name the base branch.',
    {},
  )
}

const uploadPack = ({ protocol }: Location): readonly string[] =>
  protocol === 'file' ? [`--upload-pack=${localUploadPack}`] : []

function unreadable({ address, protocol }: Location, stderr: string): TuttiError {
  const cause = new Error(stderr)
  const unsafe = fsckComplaint(stderr)
  if (unsafe !== undefined) {
    return new TuttiError(
      'failed_precondition',
      `${address} has an object that git finds unsafe: ${unsafe}. Remove the branch or tag that has it.`,
      { location: address },
      cause,
    )
  }
  if (protocol === 'file') {
    return new TuttiError(
      'unavailable',
      `There is no readable git repository at ${address}.`,
      { location: address },
      cause,
    )
  }
  if (isRefusedAccess(stderr)) {
    return new TuttiError(
      'permission_denied',
      `${address} refused the access; check the credentials.`,
      { location: address },
      cause,
    )
  }
  return new TuttiError(
    'unavailable',
    `${address} could not be read; check the address and the network.`,
    { location: address },
    cause,
  )
}
