import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { addRepoAdd } from './repo-add.ts'
import { addRepoList } from './repo-list.ts'

/** `tutti repo …`: repositories on the server's disk. */
export function addRepo(program: Command, cli: Cli): void {
  const repo = program.command('repo').description('repositories that requests may name')
  addRepoAdd(repo, cli)
  addRepoList(repo, cli)
}
