import { join } from 'node:path'
import { visibleText } from '@tutti/core'
import type { Location } from './location.ts'
import { pinHost } from './location.ts'
import { localReceivePack } from './hardened.ts'
import type { PushResult } from './port.ts'
import type { GitRunner } from './run-git.ts'

export interface PushRequest {
  readonly commit: string
  readonly branch: string
  readonly expected?: string
}

const pushTimeoutMs = 10 * 60_000

/**
 * Pushes one commit to one branch with a lease on exactly what the branch was (absent, when nothing is expected): commits that
 * we did not see are never overwritten.
 */
export async function pushCommit(
  git: GitRunner,
  gitDir: string,
  location: Location,
  { commit, branch, expected = '' }: PushRequest,
  signal: AbortSignal,
): Promise<PushResult> {
  const ref = `refs/heads/${branch}`
  const local = location.protocol === 'file' ? [`--receive-pack=${localReceivePack}`] : []
  const args = ['push', '--porcelain', '--no-verify', '--no-follow-tags', '--recurse-submodules=no', ...local]
  const output = await git.run(
    [...args, `--force-with-lease=${ref}:${expected}`, '--', location.address, `${commit}:${ref}`],
    {
      gitDir,
      signal,
      protocol: location.protocol,
      config: await pinHost(location, signal),
      timeoutMs: pushTimeoutMs,
    },
  )
  const line = output.stdout
    .toString('utf8')
    .split('\n')
    .find((text) => text.includes(`:${ref}\t`))
  if (line?.startsWith('=')) return { outcome: 'already_there' }
  if (output.exitCode === 0) return { outcome: 'pushed' }
  const refusal = explain(line ?? '', output.stderr)
  // The lease is tested before the far end is asked; that nobody may push there is what helps a person more.
  if (
    refusal.why === 'moved' &&
    location.protocol === 'file' &&
    (await isCheckedOut(git, location, ref, signal))
  )
    return { outcome: 'refused', ...checkedOut }
  return { outcome: 'refused', ...refusal }
}

/** Whether a work tree of a local repository has the branch checked out. */
async function isCheckedOut(
  git: GitRunner,
  { address }: Location,
  ref: string,
  signal: AbortSignal,
): Promise<boolean> {
  // A folder with a work tree, else a bare repository: named outright, so that git looks no further up.
  for (const gitDir of [join(address, '.git'), address]) {
    const trees = await git.run(['worktree', 'list', '--porcelain', '-z'], {
      env: { GIT_DIR: gitDir },
      signal,
    })
    if (trees.exitCode === 0) return trees.stdout.toString('utf8').split('\0').includes(`branch ${ref}`)
  }
  return false
}

const checkedOut = {
  why: 'protected_branch',
  message: 'The branch is checked out in the repository; choose another branch.',
} as const

type Refusal = Omit<Extract<PushResult, { outcome: 'refused' }>, 'outcome'>

/** What git and the far end said, as one of our kinds. The list is of texts that git and the forges have kept for years. */
function explain(line: string, stderr: string): Refusal {
  const answer = line.split('\t').at(-1) ?? ''
  const all = `${answer}\n${stderr}`
  const says = (pattern: RegExp) => pattern.test(all)
  const message = (why: string) => `${why}${answer || lastLine(stderr)}`.slice(0, 2048)
  if (/stale info|fetch first|non-fast-forward|incorrect old value|reference already exists/i.test(answer)) {
    return { why: 'moved', message: message('The branch has commits that were not seen: ') }
  }
  if (/currently checked out/i.test(answer)) return checkedOut
  const unsafe = fsckComplaint(stderr)
  if (unsafe !== undefined) {
    return {
      why: 'protected_branch',
      message: `The repository refuses this commit, since git finds it unsafe: ${unsafe}`,
    }
  }
  if (
    /hook declined|protected|prohibited|hidden ref|GH006|GH013|not allowed/i.test(answer) ||
    says(/GH006|GH013|protected branch/i)
  ) {
    return { why: 'protected_branch', message: message('The repository refuses pushes to this branch: ') }
  }
  if (isRefusedAccess(all)) return { why: 'auth', message: message('The repository refused the access: ') }
  if (line === '' && isUnreachable(all)) {
    return { why: 'unavailable', message: message('The repository could not be reached: ') }
  }
  return { why: 'other', message: message('The push failed: ') }
}

/** What git found wrong with an object, such as `gitmodulesUrl: disallowed submodule url: …`; undefined when that was not the reason. */
export function fsckComplaint(stderr: string): string | undefined {
  if (!/fsck error in pack/i.test(stderr)) return undefined
  const [, complaint = 'fsck error'] =
    /^(?:remote: )?error: (?:object )?[0-9a-f]{40,64}: (.+?)\s*$/m.exec(stderr) ?? []
  return visibleText(complaint).slice(0, 512)
}

const lastLine = (stderr: string): string =>
  stderr.split('\n').findLast((text) => /^(?:fatal|error|remote):/.test(text)) ??
  stderr.split('\n').at(-1) ??
  ''

export const isRefusedAccess = (text: string): boolean =>
  /authentication failed|could not read (?:username|password)|terminal prompts disabled|permission .*denied|permission denied|access denied|returned error: 40[13]|host key verification failed|insufficient permission|unable to create temporary object directory/i.test(
    text,
  )

export const isUnreachable = (text: string): boolean =>
  /could not resolve|connection (?:refused|reset|timed out|closed)|timed out|unable to access|could not read from remote|does not appear to be a git repository|early eof|hung up|returned error: 5\d\d|no route to host|network is unreachable|unexpected disconnect/i.test(
    text,
  )
