import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { serveRole, type ServeOptions } from '../run/serve-role.ts'

/** `tutti serve api|worker`: the parts as processes of their own on the same data folder. */
export function addServe(program: Command, cli: Cli): void {
  const serve = program
    .command('serve')
    .description(
      'start one part as a process of its own; all parts of a data folder share one Temporal server',
    )
  serve
    .command('api')
    .description('start the API, until Ctrl-C')
    .option('--port <port>', 'the port of the API, 0 for any free one (default: 7733, or a free one)')
    .addHelpText(
      'after',
      examples('tutti serve api --data-dir /srv/tutti', 'tutti serve api --port 7733 -o json'),
    )
    .action(
      cli.action<[], ServeOptions>((context, options) => serveRole(context, 'api', options), {
        signals: false,
      }),
    )
  serve
    .command('worker')
    .description('start a worker, until Ctrl-C; several may run')
    .option('--max-sandboxes <number>', 'how many agents work at the same time (default: one per core)')
    .addHelpText(
      'after',
      examples('tutti serve worker --data-dir /srv/tutti', 'tutti serve worker --max-sandboxes 8'),
    )
    .action(
      cli.action<[], ServeOptions>((context, options) => serveRole(context, 'worker', options), {
        signals: false,
      }),
    )
}
