import type { Command } from 'commander'
import { phaseFromWire } from '@tutti/protocol/wire'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { isTextOutput } from '../output/output.ts'
import { safeLine } from '../output/terminal-text.ts'
import { resolveEnsembleId } from '../resolve-id.ts'

export function addEnsembleStop(ensemble: Command, cli: Cli): void {
  ensemble
    .command('stop <id>')
    .description('stop all agents of an ensemble, each with a checkpoint')
    .addHelpText('after', examples('tutti ensemble stop en-0191f3'))
    .action(
      cli.action<[string], object>(async (context, id) => {
        const { output, signal } = context
        const client = await context.connect()
        const ensembleId = await resolveEnsembleId(client, id, signal)
        const { phase, reason } = await client.ensembles.stopEnsemble({ ensembleId }, { signal })
        if (!isTextOutput(output))
          return output.json({ ensemble_id: ensembleId, phase: phaseFromWire(phase), reason })
        output.line(
          `${ensembleId}  ${phaseFromWire(phase)}${reason === '' ? '  stopping' : `  ${safeLine(reason)}`}`,
        )
      }),
    )
}
