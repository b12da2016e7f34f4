import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import type { DoctorCheckResult } from '../doctor/doctor-checks.ts'
import { examples } from '../examples.ts'
import { isTextOutput, type Palette } from '../output/output.ts'
import { table } from '../output/table.ts'
import { safeLine } from '../output/terminal-text.ts'

/** `tutti doctor`: tries what a run needs. Exit code 1 when something that is needed is missing. */
export function addDoctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .description('try everything that a run needs, and say how to get what is missing')
    .addHelpText('after', examples('tutti doctor', 'tutti doctor -o json'))
    .action(
      cli.action<[], object>(async (context) => {
        const { output } = context
        const { doctorChecks } = await import('../doctor/doctor-checks.ts')
        const checks = await doctorChecks(context)
        const failed = checks.some((check) => check.status === 'failed')
        if (!isTextOutput(output)) output.json({ ok: !failed, checks })
        else {
          const { paint } = output
          const rows = checks.map(({ name, status, found, origin }) => [
            mark(status, paint),
            name,
            safeLine(found) + (origin === '' ? '' : paint.dim(` (${safeLine(origin)})`)),
          ])
          for (const line of table(rows)) output.line(line)
          for (const { name, fix } of checks.filter((check) => check.fix !== '')) {
            output.line(`\n${paint.bold(name)}: ${safeLine(fix)}`)
          }
        }
        return failed ? 1 : 0
      }),
    )
}

function mark(status: DoctorCheckResult['status'], paint: Palette): string {
  return {
    ok: paint.green('ok'),
    warning: paint.yellow('warning'),
    failed: paint.red('FAILED'),
    skipped: paint.dim('skipped'),
  }[status]
}
