import { SweepBlobsResponseSchema } from '@tutti/proto'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput } from '../output/output.ts'
import { writeSize } from '../values/size.ts'

interface GcFlags {
  readonly dryRun?: boolean
}

/** `tutti gc`: what the server does by itself every few hours, now. */
export function addGc(program: Command, cli: Cli): void {
  program
    .command('gc')
    .description(
      'remove stored files that no commit has and nothing needs any more (setting agent.retention)',
    )
    .option('--dry-run', 'remove nothing, and say what would be removed')
    .addHelpText('after', examples('tutti gc --dry-run', 'tutti gc'))
    .action(
      cli.action<[], GcFlags>(async (context, { dryRun = false }) => {
        const { output, signal } = context
        const client = await context.connect()
        const swept = await client.system.sweepBlobs({ dryRun }, { signal })
        if (!isTextOutput(output)) return output.json(messageJson(SweepBlobsResponseSchema, swept))
        const what = `${swept.removed} of ${swept.examined} blobs, ${writeSize(Number(swept.bytes))}`
        output.line(dryRun ? `would remove ${what}` : `removed ${what}`)
      }),
    )
}
