import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** Git on a very large tree must not hold up the start: then nothing is said. */
const withinMs = 2_000

/**
 * How many paths of a local repository differ from its last commit or are untracked: the agents do not see them. 0 where there is no
 * work tree.
 */
export async function countUncommitted(path: string): Promise<number> {
  const args = ['--no-optional-locks', '-c', 'core.fsmonitor=false', '-C', path, 'status', '--porcelain']
  return run('git', args, { timeout: withinMs, maxBuffer: 16 << 20 }).then(
    ({ stdout }) => stdout.split('\n').length - 1,
    () => 0,
  )
}
