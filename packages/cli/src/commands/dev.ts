import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { serveRole, type ServeOptions } from '../run/serve-role.ts'

/** `tutti dev`: everything in one process, on loopback. */
export function addDev(program: Command, cli: Cli): void {
  program
    .command('dev')
    .description('start everything on loopback: Temporal, worker and API in one process, until Ctrl-C')
    .option('--port <port>', 'the port of the API, 0 for any free one (default: 7733, or a free one)')
    .option('--temporal-port <port>', 'the port of the Temporal server')
    .option('--ui-port <port>', 'the port of the Temporal UI')
    .option('--max-sandboxes <number>', 'how many agents work at the same time (default: one per core)')
    .addHelpText('after', examples('tutti dev', 'tutti dev --port 0 --data-dir /tmp/tutti -o json'))
    .action(
      cli.action<[], ServeOptions>((context, options) => serveRole(context, 'dev', options), {
        signals: false,
      }),
    )
}
