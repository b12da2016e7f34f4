import type { Command } from 'commander'
import { workflowStatusFromWire } from '@tutti/protocol/wire'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { isTextOutput } from '../output/output.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { printAgentState } from './print-agent-state.ts'

export function addAgentStop(agent: Command, cli: Cli): void {
  agent
    .command('stop <id>')
    .description('end the running turn with a checkpoint; waiting turns go on')
    .option('--all', 'drop the waiting turns too')
    .addHelpText('after', examples('tutti agent stop bc-0191f3', 'tutti agent stop bc-0191f3 --all'))
    .action(
      cli.action<[string], { readonly all?: boolean }>(async (context, id, flags) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const answer = await client.agents.stopAgent({ bcId, all: flags.all === true }, { signal })
        const stopping = workflowStatusFromWire(answer.workflowStatus) === 'RUNNING'
        if (stopping && isTextOutput(output)) return output.line(`${bcId}  stopping`)
        printAgentState(output, bcId, answer.workflowStatus, answer.state)
      }),
    )
}
