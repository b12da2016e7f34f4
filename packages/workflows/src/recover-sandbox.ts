import { limits } from '@tutti/core'
import { isCancellation } from '@temporalio/workflow'
import { readFailure, type Failure } from './failure.ts'
import type { SandboxLife } from './sandbox-life.ts'

/**
 * Replaces the agent's sandbox, whatever is left of it, while no turn runs. One that is lost on its way is replaced as well, three
 * times at most. Returns what stood in the way, if anything did; there is no sandbox then.
 */
export async function recoverSandbox(sandbox: SandboxLife): Promise<Failure | 'cancelled' | undefined> {
  for (let lost = 0; ;) {
    await sandbox.release()
    try {
      await sandbox.ensure()
      return undefined
    } catch (thrown) {
      await sandbox.release()
      const failure = readFailure(thrown)
      if (isCancellation(thrown) || !failure) return 'cancelled'
      if (failure.why === 'lost') lost += 1
      if (!failure.sandboxLost || lost > limits.maxRestarts) return failure
    }
  }
}
