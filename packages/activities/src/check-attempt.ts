import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { runToEnd } from './run-to-end.ts'
import type { Sessions } from './sessions.ts'

/** Runs the check command in the agent's own sandbox, after its checkpoint: evidence for ranking, not the verification. */
export function createCheckAttempt(deps: ActivityDeps, sessions: Sessions): Activities['checkAttempt'] {
  return (input) =>
    orFail(() =>
      withHeartbeat(input.heartbeatMs, async (signal) => {
        const session = sessions.get(input)
        const { server, config, log, workspace } = session
        session.quiet = false
        await server.killProcesses(signal)
        const startedAt = deps.clock.monotonic()
        const { exit, tail } = await runToEnd(server, config.checkCommand, signal, config.checkTimeoutMs)
        const exitCode = exit.timedOut ? null : exit.code
        const durationMs = Math.round(deps.clock.monotonic() - startedAt)
        await log.write({
          type: 'check',
          command: config.checkCommand,
          commit: workspace.commit,
          result: { exitCode, tail, durationMs },
        })
        await log.flush()
        return { exitCode }
      }),
    )
}
