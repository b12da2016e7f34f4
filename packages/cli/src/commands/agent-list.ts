import type { Command } from 'commander'
import { AgentSchema, CloudAgentWorkflowStatus } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { agentTable } from '../output/agent-lines.ts'
import { printList } from '../output/print-list.ts'
import { resolveEnsembleId } from '../resolve-id.ts'
import { addPaging, readPages, type PagingFlags } from './paging.ts'

const statuses = {
  running: CloudAgentWorkflowStatus.RUNNING,
  idle: CloudAgentWorkflowStatus.IDLE,
  error: CloudAgentWorkflowStatus.ERROR,
  archived: CloudAgentWorkflowStatus.ARCHIVED,
  expired: CloudAgentWorkflowStatus.EXPIRED,
}

interface ListFlags extends PagingFlags {
  readonly status?: keyof typeof statuses
  readonly ensemble?: string
  readonly all?: boolean
}

export function addAgentList(agent: Command, cli: Cli): void {
  const command = agent.command('list').description('list agents, newest first')
  addPaging(command)
    .addOption(command.createOption('--status <status>', 'only these').choices(Object.keys(statuses)))
    .option('--ensemble <id>', 'only the children of this ensemble')
    .option('--all', 'archived ones too')
    .addHelpText('after', examples('tutti agent list', 'tutti agent list --status running -o jsonl'))
    .action(
      cli.action<[], ListFlags>(async (context, flags) => {
        const { output, signal, deps } = context
        const client = await context.connect()
        const ensembleId =
          flags.ensemble === undefined ? '' : await resolveEnsembleId(client, flags.ensemble, signal)
        const found = await readPages(flags, async (page) => {
          const request = {
            ...page,
            ensembleId,
            includeArchived: flags.all === true || flags.status === 'archived',
            workflowStatuses: flags.status === undefined ? [] : [statuses[flags.status]],
          }
          const { agents, nextPageToken } = await client.agents.listAgents(request, { signal })
          return { items: agents, nextPageToken }
        })
        printList(
          output,
          AgentSchema,
          found,
          () => agentTable(found.items, deps.clock.now()),
          'There are no agents.',
        )
      }),
    )
}
