import type { Command } from 'commander'
import { AgentSchema } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { agentDetails } from '../output/agent-lines.ts'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput } from '../output/output.ts'
import { resolveAgentId } from '../resolve-id.ts'

export function addAgentGet(agent: Command, cli: Cli): void {
  agent
    .command('get <id>')
    .description('show one agent: status, queue, question, checkpoint')
    .addHelpText('after', examples('tutti agent get bc-0191f3', 'tutti agent get bc-0191f3 -o json'))
    .action(
      cli.action<[string], object>(async (context, id) => {
        const { output, signal, deps } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const { agent: found } = await client.agents.getAgent({ bcId }, { signal })
        if (!isTextOutput(output)) return output.json(messageJson(AgentSchema, found!))
        for (const line of agentDetails(found!, deps.clock.now())) output.line(line)
      }),
    )
}
