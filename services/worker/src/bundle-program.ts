import { writeFile } from 'node:fs/promises'
import { DefaultLogger, bundleWorkflowCode } from '@temporalio/worker'

// Program: bundles the workflows of the module that is its first argument into the file that is its second.
const [entry, path] = process.argv.slice(2)
const { code } = await bundleWorkflowCode({ workflowsPath: entry!, logger: new DefaultLogger('ERROR') })
await writeFile(path!, code)
