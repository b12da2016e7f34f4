/**
 * For tests: what workspaces hold and copies lose. Each is lines for a shell that runs in some folder of the workspace; shapes meet in the same
 * folder, so that one makes a folder where another one had a file.
 */
export const treeShapes: Readonly<Record<string, string>> = {
  'an empty folder': 'mkdir -p hollow',
  'empty folders in empty folders': 'mkdir -p hollow/a/b hollow/c',
  'a folder that was emptied': 'mkdir -p was; echo x > was/x; rm -f was/*',
  'a link to a file': 'echo in > in.txt; ln -sfn in.txt to-file',
  'a link that leads nowhere': 'ln -sfn missing/path dangling',
  'a link to a folder': 'mkdir -p data; echo 1 > data/1; ln -sfn data to-folder',
  'a link out of the workspace': 'ln -sfn ../../../../outside out; ln -sfn /etc/passwd absolute',
  'links in a circle': 'ln -sfn circle2 circle1; ln -sfn circle1 circle2; ln -sfn . self',
  'a link with raw bytes for a target': String.raw`ln -sfn "$(printf 'a\377\n"b')" raw-target`,
  'a link with a long target': `ln -sfn "$(printf '%01500d' 7)" long-target`,
  'a program': 'printf "#!/bin/sh\\nexit 0\\n" > tool; chmod 755 tool',
  'modes of all kinds':
    'for m in 600 640 700 711 444 555 4755 1644; do echo $m > mode-$m; chmod $m mode-$m; done',
  'a mode that changes': 'echo x > flip-mode; chmod 755 flip-mode; sync flip-mode; chmod 644 flip-mode',
  'names that are not UTF-8': String.raw`n=$(printf 'f\377\376o'); echo raw > "$n"; mkdir -p "d$n"; echo raw > "d$n/$n"`,
  'names in two forms of Unicode': String.raw`echo composed > "$(printf 'caf\303\251')"; echo decomposed > "$(printf 'cafe\314\201')"`,
  'names that differ by case':
    'echo a > Readme.md; echo b > README.md; mkdir -p Dir dir; echo c > Dir/x; echo d > dir/x',
  'names with spaces at their ends': 'echo a > " lead"; echo b > "trail "; echo c > "dot."; echo d > "..."',
  'names like options': 'echo a > ./-rf; echo b > ./--; echo c > ./-',
  'names with newlines, tabs, quotes and backslashes': String.raw`echo a > "$(printf 'a\nb\tc')"; echo b > "it's"; echo c > 'say "x"'; echo d > 'back\slash'`,
  'names of other scripts': String.raw`echo a > '😀'; echo b > 'שלום'; echo c > "$(printf 'zero\342\200\213width')"`,
  'names of control characters': String.raw`echo a > "$(printf '\001\177')"; echo b > "$(printf 'cr\rx')"`,
  'a name of 255 bytes': `echo long > "$(printf '%0255d' 3)"`,
  'names like patterns':
    "echo a > ':(top)x'; echo b > '*'; echo c > '?'; echo d > '[a-z]'; echo e > '!x'; echo f > '#x'",
  'a deep tree':
    'p=deep; for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do p=$p/$n; done; mkdir -p $p; echo deep > $p/x',
  'a path longer than the system takes':
    'n=$(printf "%0200d" 1); ( for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do mkdir -p $n; cd -P $n 2>/dev/null || break; done; echo far > end )',
  'a file that becomes a folder': 'rm -rf flip; echo x > flip; rm -f flip; mkdir flip; echo k > flip/k',
  'a folder that becomes a file':
    'rm -rf flip; mkdir -p flip/in; echo 1 > flip/in/1; rm -rf flip; echo file > flip',
  'a file that becomes a link': 'rm -rf flip; ln -s in.txt flip',
  'a link that becomes a folder': 'rm -rf to-folder; mkdir to-folder; echo own > to-folder/own',
  'a folder that becomes a link': 'rm -rf data; mkdir -p other; echo o > other/1; ln -s other data',
  'a fifo': 'rm -rf pipe; mkfifo pipe',
  'a folder with nothing but a fifo': 'mkdir -p only-pipe; mkfifo only-pipe/p',
  'a socket': `node -e 'require("net").createServer().listen("sock", () => process.exit(0))'`,
  'a device': 'mknod device c 0 0',
  'a file that becomes a fifo': 'rm -rf flip; mkfifo flip',
  'a large file': 'head -c 3000000 /dev/urandom > large.bin',
  'a larger file': 'head -c 6000000 /dev/urandom > larger.bin',
  'a file that is too large': 'truncate -s 9M huge',
  'a file that becomes too large': 'echo small > grows; git add -f grows; truncate -s 9M grows',
  'a file with holes': 'truncate -s 1M holes; echo end >> holes',
  'hard links': 'echo linked > hard1; ln -f hard1 hard2',
  'bytes that tools change': String.raw`printf '' > zero; printf 'a\r\nb\r\n' > crlf.txt; printf x > nonl.txt; printf '\357\273\277x' > bom.txt; printf '\351' > latin.txt; printf 'a\0b\377' > nul.bin`,
  'attributes with other line ends': String.raw`printf '* text=auto eol=crlf\n*.crlf text eol=crlf\n' > .gitattributes; printf 'x\ny\n' > lf.txt; printf 'x\r\ny\r\n' > a.crlf`,
  'attributes with filters': String.raw`printf '*.up filter=upper\n*.ident ident\n*.u16 working-tree-encoding=UTF-16\n' > .gitattributes; git config filter.upper.clean 'tr a-z A-Z'; git config filter.upper.smudge 'tr A-Z a-z'; echo lower > a.up; printf '$Id$\n' > b.ident; printf 'x' > c.u16`,
  'small ignored files':
    'printf "*.local\\n" >> .gitignore; echo own > dev.local; mkdir -p sub; echo own > sub/dev.local',
  'large ignored files':
    'printf "cache/\\n" >> .gitignore; mkdir -p cache; head -c 1500000 /dev/zero > cache/big; echo s > cache/small',
  'an ignored folder with nothing in it': 'printf "logs/\\n" >> .gitignore; mkdir -p logs/empty',
  'folders that a setup makes':
    'printf "node_modules/\\n" >> .gitignore; mkdir -p node_modules/a; echo a > node_modules/a/x; mkdir -p lib/node_modules; echo b > lib/node_modules/x',
  'files with secrets': 'printf ".env*\\n" >> .gitignore; echo s > .env; echo s > .env.example',
  'rules that take back': 'printf "*\\n!*.md\\n!.gitignore\\n" > .gitignore; echo a > a.md; echo b > b.txt',
  'files that are tracked although ignored':
    'printf "*.log\\n" >> .gitignore; echo t > forced.log; git add -f forced.log; echo u > un.log',
  'an end of all rules': 'rm -rf .gitignore',
  'a fifo among ignored files':
    'printf "run/\\n" >> .gitignore; mkdir -p run; mkfifo run/p; echo pid > run/pid',
  'rules that are a folder': 'rm -rf .gitignore; mkdir -p .gitignore; echo x > .gitignore/x',
  'names like that of the repository': String.raw`mkdir -p .GIT; echo x > .GIT/config; echo y > 'git~1'; echo z > .gitx; echo w > '.git '`,
  'names of files that git reads':
    'ln -sfn nowhere .gitmodules; echo "x <x@y>" > .mailmap; echo x > HEAD; mkdir -p refs objects; echo y > refs/y',
  'a file that nobody may read': 'echo secret > shut.txt; chmod 000 shut.txt',
  'a folder that nobody may read': 'mkdir -p shut; echo in > shut/in; chmod 000 shut',
  'a folder that nobody may enter': 'mkdir -p listed; echo in > listed/in; chmod 600 listed',
  'a folder that nobody may write': 'mkdir -p fixed; echo in > fixed/in; chmod 555 fixed',
  'shut folders that open again': 'chmod 755 shut listed fixed; chmod 644 shut.txt',
  'many small files': 'mkdir -p many; i=0; while [ $i -lt 150 ]; do echo $i > many/$i; i=$((i+1)); done',
  'a swap of names': 'echo A > a.txt; echo B > b.txt; mv a.txt t.tmp; mv b.txt a.txt; mv t.tmp b.txt',
  'a folder that moves, and its name used again':
    'mkdir -p src; for n in 1 2 3 4 5; do echo $n > src/f$n; done; rm -rf lib; mv src lib; mv lib/f1 src',
  'other content under the same time and size':
    'echo abc > same; touch -d @1000000000 same; echo xyz > same; touch -d @1000000000 same',
  'a file removed and made again': 'rm -f in.txt; echo in > in.txt',
  'text like a conflict': 'printf "<<<<<<< HEAD\\na\\n=======\\nb\\n>>>>>>> x\\n" > conflict.txt',
}
