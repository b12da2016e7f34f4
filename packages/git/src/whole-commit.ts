import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { checkFolder, quoted } from './check-pack.ts'
import type { MirrorStores } from './mirror-stores.ts'
import type { GitRunner } from './run-git.ts'
import { packBeyondSource } from './source-pack.ts'

const timeoutMs = 30 * 60_000

/**
 * Whether the mirror has a commit of ours whole: what it would hand to a sandbox is taken as one takes it, so that every object beyond
 * the base is read and hashed. Only git's own verdict is an answer: whatever else keeps it from reading says nothing of the commit.
 *
 * @throws TuttiError `unavailable`, `deadline_exceeded` or `cancelled` when it could not be read to its end.
 */
export async function isWholeCommit(
  git: GitRunner,
  { mirror, source }: MirrorStores,
  { commit, base }: { readonly commit: string; readonly base: string },
  signal: AbortSignal,
): Promise<boolean> {
  const objects = checkFolder(mirror)
  await mkdir(objects, { recursive: true })
  const env = {
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(join(source, 'objects')),
  }
  // It is removed again.
  const options = { gitDir: mirror, env, config: ['core.fsync=none'], signal, timeoutMs }
  let problem: unknown
  async function* pack() {
    try {
      yield* packBeyondSource(git, mirror, commit, base, signal)
    } catch (thrown) {
      // The pack ends early.
      problem = thrown
    }
  }
  try {
    const taken = await git.run(['index-pack', '--stdin', '--threads=1'], { ...options, input: pack() })
    if (problem instanceof TuttiError && problem.code !== 'internal') throw problem
    if (problem || taken.exitCode !== 0) return false
    const walked = await git.run(['rev-list', '--objects', '--quiet', commit, `^${base}`], options)
    return walked.exitCode === 0
  } finally {
    await rm(objects, { recursive: true, force: true })
  }
}
