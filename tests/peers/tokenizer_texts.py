# What judges share: texts in which tokenizers differ, and how programs that ask Heed are compiled.
import pathlib
import random
import shlex
import subprocess

LIBRARIES = '-lopenblas -lcrypto -lpng -lz -lutf8proc -ldl -lsentencepiece -lsentencepiece_train -lpthread'


def compiled_judge(heed, room, name='tokens_judge'):
    """Compiles a program of this folder into the folder `room`, against libheed.a beside the program `heed`."""
    here, build = pathlib.Path(__file__).resolve().parent, pathlib.Path(heed).parent
    subprocess.run(['g++', '-std=c++20', '-O1', f'-I{here.parents[1] / "include"}', here / f'{name}.cpp', build / 'libheed.a',
                    *shlex.split(LIBRARIES), '-o', room / name], check=True)


def hostile(lines, count, more=()):
    """Texts: lines as they are, and lines mixed with what tokenizers differ in and with `more`."""
    draw = random.Random(1)
    odd = ['[MASK]', '[CLS]', '[SEP]', '[UNK]', '[PAD]', '[mask]', '[MASK', '[[MASK]]', '\t', '\n', '\r\n', '\x00', '\x0b', '\x85', '\u2028', '\u00a0',
           '\u3000', '\ufffd', '\u200b', '\u200d', '\u00ad', '\ufeff', 'caff\u00e8', 'cafe\u0301', '\u0130I\u0131', '\u00df\u1e9e', '\ufb01', '\u01c5',
           '\u65e5\u672c\u8a9e', '\u304b\u306a', '\ud55c\uad6d\uc5b4', '\U0001f600\U0001f3fd', '\U0001f469\u200d\U0001f680', '\U00020000', '\uf900', '##ing',
           '$1,024.50', "don't", '\u00bfqu\u00e9?', '\u2014', '\u20ac', 'a' * 100, 'b' * 101, '\u0e01\u0e33', '\u0627\u064e', '\u0915\u094d\u0937', '\u1734',
           '\u166d', '\u2e43', '\U000111c9', '\u05d0\u05bc', '\u03a3\u03c2', '+', '~', '`', '^', '_x_', *more]
    out = list(lines[:count // 4])
    while len(out) < count:
        kind, parts = draw.randrange(3), []
        for _ in range(draw.randrange(1, 12)):
            if kind == 0 or draw.random() < 0.4:
                parts.append(draw.choice(odd))
            if kind == 1:
                top = draw.choice((0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000))
                code = draw.randrange(top)
                parts.append('\ufffd' if 0xd800 <= code < 0xe000 else chr(code))
            parts.append(draw.choice(draw.choice(lines).split() or ['x']))
            parts.append(draw.choice(('', ' ', ' ', '  ')))
        out.append(''.join(parts))
    return out
