import { captureLast } from './capture-last.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail, sandboxLost } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { saveSession } from './save-session.ts'
import type { Sessions } from './sessions.ts'

/** Takes every change of the workspace into a checkpoint. */
export function createCheckpointTurn(deps: ActivityDeps, sessions: Sessions): Activities['checkpointTurn'] {
  return (input) =>
    orFail(() =>
      withHeartbeat(input.heartbeatMs, async (_signal, phase) => {
        const session = sessions.get(input)
        phase('capture')
        const { cut } = await captureLast(deps, session, input.turnId)
        await saveSession(deps, session)
        phase('commit')
        const checkpoint = await session.workspace.checkpoint(input.turnId, session.controller.signal)
        if (cut) throw sandboxLost('A stop did not wait for the last capture.', 'handover')
        return checkpoint
      }),
    )
}
