import { mirrorRefs } from '@tutti/core'
import { captureLast } from './capture-last.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail, sandboxLost } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { saveSession } from './save-session.ts'
import type { Sessions } from './sessions.ts'

/** Takes every change of the workspace into a commit of the mirror, built by the host from the captured files (design §8). */
export function createCheckpointTurn(deps: ActivityDeps, sessions: Sessions): Activities['checkpointTurn'] {
  return (input) =>
    orFail(() =>
      withHeartbeat(input.heartbeatMs, async (_signal, phase) => {
        const session = sessions.get(input)
        const { bcId, incarnation, log, mirror, tracker, controller } = session
        const { signal } = controller
        phase('capture')
        const { manifestDigest, cut } = await captureLast(deps, session, input.turnId)
        await saveSession(deps, session)
        phase('commit')
        const { commit, tree } = await deps.crashPoint('turn.checkpoint', () =>
          mirror.commit(
            {
              parent: session.parent,
              changes: tracker.treeChanges(),
              ref: mirrorRefs.checkpoint(bcId),
              message: `Checkpoint of ${bcId}\n\nTurn: ${input.turnId}`,
              atMs: deps.clock.now(),
            },
            signal,
          ),
        )
        const filesChanged = await mirror.countChanges(session.baseCommit, commit, signal)
        const logSequence = await deps.crashPoint('turn.checkpoint_event', async () => {
          await log.write({
            type: 'checkpoint',
            incarnation,
            turnId: input.turnId,
            commit,
            tree,
            filesChanged,
            manifestDigest,
          })
          return log.flush()
        })
        tracker.checkpointed()
        session.parent = commit
        await deps.catalog.agents.project(bcId, { logSequence, commit, filesChanged }, signal)
        if (cut) throw sandboxLost('A stop did not wait for the last capture.', true)
        return { commit, filesChanged }
      }),
    )
}
