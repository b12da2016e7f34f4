import { appendFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import {
  changedFile,
  changePath,
  isEmptyFolder,
  pathBytes,
  pathKey,
  type CapturedChange,
} from '@tutti/workspace'
import { contentOf, packOf } from '../content-of.ts'
import type { CallStream } from '../link/call.ts'
import { fromWireChange, type WireChange } from '../wire-change.ts'
import { applyChange } from './apply-change.ts'
import { runGit } from './git.ts'

export interface HydrateParams {
  readonly commit: string
  readonly head: string
  readonly branch: string
  /** Whether the first messages are a pack with what the commit needs beyond the mounted objects. */
  readonly hasPack: boolean
}

/** A checkout of a very large repository on a slow disk, in milliseconds; the time to get ready is over before as a rule. */
const gitLimitMs = 15 * 60_000

/** Turns off everything that would make a checked-out file differ from its blob. `!` where git accepts no false. */
const rawAttributes = '* -text !eol -ident -filter !working-tree-encoding -crlf\n'

/** What an agent's clone has unless the agent says otherwise; background gc would race with capture and clean-up. */
const cloneSettings = `[user]
\tname = Tutti Agent
\temail = agent@tutti.invalid
[gc]
\tauto = 0
[maintenance]
\tauto = false
[core]
\tautocrlf = false
`

/** Makes the workspace from the commit, byte for byte, and applies the changes that came after it. Returns the gitlinks. */
export async function hydrateWorkspace(
  params: HydrateParams,
  call: CallStream,
  signal: AbortSignal,
  at: { workdir: string; sourceObjects: string },
): Promise<string[]> {
  const { workdir } = at
  for (const field of ['commit', 'head'] as const) {
    if (/^[0-9a-f]{40,64}$/.test(params[field])) continue
    throw new TuttiError('invalid_argument', `The ${field} to hydrate must be a full object id.`, { field })
  }
  const git = (args: readonly string[]) => runGit(args, { cwd: workdir, signal, timeoutMs: gitLimitMs })
  // A second try in the same sandbox must not find the first one's files.
  for (const name of readdirSync(workdir, { encoding: 'buffer' })) {
    rmSync(Buffer.concat([Buffer.from(`${workdir}/`), name]), { recursive: true, force: true })
  }
  // Processes are what this costs: whatever git reads from a file is written as one.
  await git(['init', '-q', '--template=', `--initial-branch=${params.branch}`, '.'])
  const info = join(workdir, '.git', 'info')
  mkdirSync(info, { recursive: true })
  mkdirSync(join(workdir, '.git', 'objects', 'info'), { recursive: true })
  writeFileSync(join(workdir, '.git', 'objects', 'info', 'alternates'), `${at.sourceObjects}\n`)
  writeFileSync(join(info, 'attributes'), rawAttributes)
  appendFileSync(join(workdir, '.git', 'config'), cloneSettings)
  const messages = call.messages[Symbol.asyncIterator]()
  // Into the clone's own objects: nobody else's sandbox has them.
  if (params.hasPack)
    await runGit(['index-pack', '--stdin'], {
      cwd: workdir,
      signal,
      timeoutMs: gitLimitMs,
      input: packOf(messages),
    })
  await git(['update-ref', `refs/heads/${params.branch}`, params.head])
  await git(['read-tree', '--reset', '-u', params.commit])
  rmSync(join(info, 'attributes'))

  // Last: what goes takes its empty parents along.
  const emptyFolders = new Map<string, CapturedChange>()
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const change = fromWireChange(next.value.head as WireChange)
    const key = pathKey(changePath(change))
    emptyFolders.delete(key)
    if (isEmptyFolder(change)) {
      emptyFolders.set(key, change)
      continue
    }
    await applyChange(workdir, change, contentOf(messages, changedFile(change)?.size ?? 0))
  }
  for (const change of emptyFolders.values()) await applyChange(workdir, change, contentOf(messages, 0))
  const gitlinks = gitlinksOf(await git(['ls-files', '-s', '-z']))
  // Merged, so that git need not look again at what is the same; in the index alone, whatever the files have become since the commit.
  if (params.head !== params.commit) await git(['read-tree', '-i', '-m', params.head])
  return gitlinks
}

function gitlinksOf(listing: Buffer): string[] {
  return pathKey(listing)
    .split('\0')
    .filter((line) => line.startsWith('160000 '))
    .map((line) => pathKey(pathBytes(line.slice(line.indexOf('\t') + 1))))
}
