import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { printSummary } from '../workspace/print-summary.ts'
import { writeWorkspace } from '../workspace/write-workspace.ts'

interface WorkspaceFlags {
  readonly at?: string
  readonly to: string
}

export function addAgentWorkspace(agent: Command, cli: Cli): void {
  agent
    .command('workspace <id>')
    .description("write an agent's files into a folder: those of now, or of any position of its log")
    .requiredOption('--to <dir>', 'a folder that is not there yet, or is empty and then stays what it is')
    .option('--at <offset>', 'as of this offset (offset_key of a line of `tutti agent events -o jsonl`)')
    .addHelpText(
      'after',
      examples(
        'tutti agent workspace bc-0191f3 --to /tmp/work',
        'tutti agent workspace bc-0191f3 --at OFFSET --to /tmp/before',
      ),
    )
    .action(
      cli.action<[string], WorkspaceFlags>(async (context, id, { at, to }) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const request = { bcId, ...(at !== undefined && { atOffsetKey: at }) }
        printSummary(output, await writeWorkspace(client.agents.readWorkspace(request, { signal }), to))
      }),
    )
}
