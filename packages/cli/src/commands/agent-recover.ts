import { TuttiError } from '@tutti/core'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { printSummary } from '../workspace/print-summary.ts'

interface RecoverFlags {
  readonly at?: string
  readonly verify?: boolean
}

export function addAgentRecover(agent: Command, cli: Cli): void {
  agent
    .command('recover <id>')
    .description("prove that an agent's files can be had from the log and the stores, without any sandbox")
    .requiredOption('--verify', 'read and hash everything, and compare it with what the log recorded')
    .option('--at <offset>', 'as of this offset (offset_key of a line of `tutti agent events -o jsonl`)')
    .addHelpText(
      'after',
      examples(
        'tutti agent recover bc-0191f3 --verify',
        'tutti agent recover bc-0191f3 --verify --at OFFSET -o json',
      ),
    )
    .action(
      cli.action<[string], RecoverFlags>(async (context, id, { at }) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const request = { bcId, verifyOnly: true, ...(at !== undefined && { atOffsetKey: at }) }
        for await (const { part } of client.agents.readWorkspace(request, { signal }))
          if (part.case === 'summary') return printSummary(output, part.value)
        throw new TuttiError('unavailable', 'The server ended before it had read everything; try again.')
      }),
    )
}
