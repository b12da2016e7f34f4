import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { addEnsembleGet } from './ensemble-get.ts'
import { addEnsembleList } from './ensemble-list.ts'
import { addEnsembleStop } from './ensemble-stop.ts'
import { addEnsembleWatch } from './ensemble-watch.ts'

/** `tutti ensemble …`; `tutti run` makes them. */
export function addEnsemble(program: Command, cli: Cli): void {
  const ensemble = program.command('ensemble').description('ensembles: list, look at, follow, stop')
  addEnsembleList(ensemble, cli)
  addEnsembleGet(ensemble, cli)
  addEnsembleWatch(ensemble, cli)
  addEnsembleStop(ensemble, cli)
}
