import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { addPrList } from './pr-list.ts'
import { addPrShow } from './pr-show.ts'

/** `tutti pr …`: the pull requests that Tutti made. */
export function addPr(program: Command, cli: Cli): void {
  const pr = program.command('pr').description('pull requests that Tutti made')
  addPrList(pr, cli)
  addPrShow(pr, cli)
}
