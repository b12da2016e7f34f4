import type { Command } from 'commander'
import { crashPointList } from '@tutti/core'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { table } from '../output/table.ts'
import { addAdminRebuild } from './admin-rebuild.ts'

/** `tutti admin …`: for those who operate or test Tutti itself. */
export function addAdmin(program: Command, cli: Cli): void {
  const admin = program.command('admin').description('for those who operate or test Tutti itself')
  addAdminRebuild(admin, cli)
  admin
    .command('crash-points')
    .description('the durable steps at which TUTTI_CRASH_AT=NAME:before|after[:N] ends the process, once')
    .addHelpText(
      'after',
      examples(
        'tutti admin crash-points',
        'TUTTI_CRASH_AT=turn.checkpoint:after tutti dev --data-dir /tmp/tutti',
      ),
    )
    .action(
      cli.action<[], object>(async ({ output }) => {
        if (output.format === 'json') return output.json(crashPointList)
        if (output.format === 'jsonl') return crashPointList.forEach((row) => output.jsonLine(row))
        for (const line of table(crashPointList.map((row) => [row.name, row.description]))) output.line(line)
      }),
    )
}
