import type { AgentAdapter } from '@tutti/agent'
import { parseAgentSpec, TuttiError, type Clock } from '@tutti/core'
import type { BrainEnv } from './brain.ts'

/** Model calls of one turn. More than a long honest task needs; a loop that has lost its way ends here. */
const defaultMaxSteps = 200

/** Repeats of a model call that failed for a passing reason, with growing pauses of 2 s, 4 s … (of the library). */
const defaultMaxRetries = 2

export interface EmbeddedAdapterDeps {
  readonly clock: Clock
  /** The worker's environment: keys and addresses of models. Nothing of it reaches the sandbox. */
  readonly env: BrainEnv
  readonly maxSteps?: number
  readonly maxRetries?: number
}

/**
 * Our own loop over the `ai` model interface. It runs in the worker; all that its tools do happens in the sandbox, through the
 * agent server. `embedded:BRAIN` chooses who thinks, see `chooseBrain` in `brain.ts`.
 *
 * `open` throws TuttiError `invalid_argument` (unknown brain), `failed_precondition` (nothing configured), `data_loss` (an
 * exported session that cannot be read).
 */
export function createEmbeddedAdapter({
  clock,
  env,
  maxSteps,
  maxRetries,
}: EmbeddedAdapterDeps): AgentAdapter {
  return {
    kind: 'embedded',
    async open({ config, host, exported }) {
      const spec = parseAgentSpec(config.agentSpec)
      if (spec.kind !== 'embedded') {
        throw new TuttiError('invalid_argument', `The embedded adapter cannot run "${config.agentSpec}".`, {
          field: 'agent',
        })
      }
      // With the first agent that needs them: the libraries of models are a twentieth of what a worker loads at its start.
      const [{ chooseBrain }, { createEmbeddedSession }, { decodeSession }] = await Promise.all([
        import('./brain.ts'),
        import('./embedded-session.ts'),
        import('./session-state.ts'),
      ])
      return createEmbeddedSession({
        clock,
        host,
        brain: chooseBrain(spec.brain, env, clock),
        state: decodeSession(exported),
        maxSteps: maxSteps ?? defaultMaxSteps,
        maxRetries: maxRetries ?? defaultMaxRetries,
      })
    },
  }
}
