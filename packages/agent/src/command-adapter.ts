import { parseAgentSpec, TuttiError, type Clock } from '@tutti/core'
import { createCommandSession } from './command-session.ts'
import type { AgentAdapter } from './port.ts'

/**
 * Any program that edits a checkout is an agent: `command:claude -p {prompt}` (docs/agents.md has the rules). It runs inside the
 * sandbox without a shell. What it prints becomes the live output of one `shell` tool call; lines that start with
 * `::tutti:: ` become events of their own (seed 004's names). Exit code 0 completes the turn.
 *
 * `open` throws TuttiError `invalid_argument` for a spec of another kind.
 */
export function createCommandAdapter({ clock }: { readonly clock: Clock }): AgentAdapter {
  return {
    kind: 'command',
    async open({ bcId, config, host, exported }) {
      const spec = parseAgentSpec(config.agentSpec)
      if (spec.kind !== 'command') {
        throw new TuttiError('invalid_argument', `The command adapter cannot run "${config.agentSpec}".`, {
          field: 'agent',
        })
      }
      return createCommandSession({ clock, bcId, command: spec.command, host, ...(exported && { exported }) })
    },
  }
}
