import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { ensembleResult } from '../live/ensemble-result.ts'
import { renderSummary } from '../live/summary.ts'
import { isTextOutput } from '../output/output.ts'
import { resolveEnsembleId } from '../resolve-id.ts'

export function addEnsembleGet(ensemble: Command, cli: Cli): void {
  ensemble
    .command('get <id>')
    .description('what came out of an ensemble, as far as it has come; the same object as of run -o json')
    .addHelpText('after', examples('tutti ensemble get en-0191f3', 'tutti ensemble get en-0191f3 -o json'))
    .action(
      cli.action<[string], object>(async (context, id) => {
        const { output, signal } = context
        const client = await context.connect()
        const ensembleId = await resolveEnsembleId(client, id, signal)
        const { ensemble: found } = await client.ensembles.getEnsemble({ ensembleId }, { signal })
        if (!isTextOutput(output)) return output.json(ensembleResult(found!))
        output.line(ensembleId)
        const next = found!.pullRequest ? [`tutti pr show ${found!.pullRequest.number}`] : []
        for (const line of renderSummary(found!, { paint: output.paint, patchLines: 0, next }))
          output.line(line)
      }),
    )
}
